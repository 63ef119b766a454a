#!/bin/sh
exec "$ZIG" cc -target "$ZIG_TARGET" "$@"
