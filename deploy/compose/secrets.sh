#!/bin/sh
# Makes the secrets of deploy/compose.yaml that are not there yet. The folder is yours alone; containers get one file each.
set -eu
cd "$(dirname "$0")"
mkdir -p -m 700 secrets
for name in app_key admin_token redis_password postgres_password seal grafana_password; do
  [ -s "secrets/$name" ] || (umask 022 && openssl rand -base64 32 | tr -d '\n' > "secrets/$name")
done
