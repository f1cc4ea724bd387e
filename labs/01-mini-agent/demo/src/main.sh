#!/bin/sh
# The shop's entry: greets, and says whether a password is set.
. "$(dirname "$0")/lib.sh"
greet "$1"
[ -n "$SHOP_PASSWORD" ] && echo "the password is set"
