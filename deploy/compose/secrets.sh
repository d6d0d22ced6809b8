#!/bin/sh
# Makes the secrets of deploy/compose.yaml that are not there yet. The folder is yours alone; containers get one file each.
set -eu
cd "$(dirname "$0")"
mkdir -p -m 700 secrets
for name in app_key admin_token redis_password postgres_password seal grafana_password operator_key; do
  [ -s "secrets/$name" ] && continue
  made=$(openssl rand -base64 32)   # where that fails nothing is written: an empty secret would be none
  (umask 022 && printf %s "$made" > "secrets/$name")
done

# The pair by which the control server knows the node, and the certificate by which the node knows the control server.
write() { (umask 022 && printf '%s\n' "$2" > "secrets/$1"); }
if [ ! -s secrets/node_public ]; then
  private=$(openssl genpkey -algorithm ed25519)
  public=$(printf '%s\n' "$private" | openssl pkey -pubout)
  write node_key "$private" && write node_public "$public"
fi
if [ ! -s secrets/control_certificate ]; then
  private=$(openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256)
  certificate=$(printf '%s\n' "$private" | openssl req -x509 -key /dev/stdin -days 825 -subj /CN=control \
    -addext subjectAltName=DNS:control,DNS:localhost,IP:127.0.0.1)
  write control_certificate_key "$private" && write control_certificate "$certificate"
fi
