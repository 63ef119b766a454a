#!/bin/sh
# inside.sh ROOT COMMAND... runs a command in the system that debian.sh made, with a /proc of its own: it goes away with
# the command.
set -eu
root=$(cd "$1" && pwd)
shift
exec unshare --fork --pid --mount-proc="$root/proc" chroot "$root" "$@"
