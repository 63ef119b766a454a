#!/bin/sh
exec "$ZIG" c++ -target "$ZIG_TARGET" "$@"
