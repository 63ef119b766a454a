#!/bin/sh
# debian.sh SUITE FOLDER [ARCHITECTURE] makes a minimal Debian in a folder, once. Of another architecture its packages are
# only unpacked, which is enough for QEMU_LD_PREFIX.
set -eu
[ -e "$2/.made" ] && exit 0
rm -rf "$2"
debootstrap --variant=minbase ${3:+--foreign --arch="$3"} "$1" "$2" >/dev/null
rm -rf "$2"/var/cache/apt/archives/*.deb
touch "$2/.made"
