#!/bin/sh
# debian.sh SUITE FOLDER makes a minimal Debian in a folder, once.
set -eu
[ -e "$2/.made" ] && exit 0
rm -rf "$2"
debootstrap --variant=minbase "$1" "$2" >/dev/null
rm -rf "$2"/var/cache/apt/archives/*.deb
touch "$2/.made"
