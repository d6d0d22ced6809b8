#!/bin/sh
# Makes the secrets of deploy/compose.yaml that are not there yet. The folder is yours alone; containers get one file each.
set -eu
cd "$(dirname "$0")"
mkdir -p -m 700 secrets
for name in app_key admin_token redis_password postgres_password seal grafana_password; do
  [ -s "secrets/$name" ] && continue
  made=$(openssl rand -base64 32)   # where that fails nothing is written: an empty secret would be none
  (umask 022 && printf %s "$made" > "secrets/$name")
done
