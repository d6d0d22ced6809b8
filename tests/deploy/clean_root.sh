#!/bin/sh
# Runs a command as the image does: in a root of its own of which nothing can be written but one folder, as a user without rights.
# Begun by `unshare --mount --propagation private`. Arguments: the root (an empty folder), Python's home, the packages, the project,
# the folder that may be written, the user; then the command.
set -eu
root=$1 python=$2 lib=$3 app=$4 var=$5 user=$6
shift 6
mount --bind "$root" "$root"
show() { # show FROM AS: what stands at FROM is seen there at AS, and can't be changed
  if [ -d "$1" ]; then mkdir -p "$root$2"; else mkdir -p "$root$(dirname "$2")" && touch "$root$2"; fi
  mount --bind "$1" "$root$2"
  mount -o remount,bind,ro "$root$2"
}
for each in /usr /lib /lib64 /etc /dev /sys; do [ ! -e $each ] || show "$(readlink -f $each)" $each; done
show "$python" /python
show "$lib" /opt/checkstream/lib
for each in checkstream policies models; do show "$app/$each" /opt/checkstream/app/$each; done
mkdir -p "$root/proc" "$root/var/lib/checkstream"
mount -t proc proc "$root/proc" 2>/dev/null || mount --rbind /proc "$root/proc"
mount --bind "$var" "$root/var/lib/checkstream"
mount -o remount,bind,ro "$root"
cd "$root/var/lib/checkstream"
exec chroot --userspec="$user" --groups= "$root" /usr/bin/env -C /var/lib/checkstream -i \
  PYTHONPATH=/opt/checkstream/app:/opt/checkstream/lib PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 LD_LIBRARY_PATH=/python/lib \
  TMPDIR=/var/lib/checkstream ${CHECKSTREAM_TEST:+CHECKSTREAM_TEST=$CHECKSTREAM_TEST} "$@"
