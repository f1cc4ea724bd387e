#!/bin/sh
# Runs each week: counts what is in stock.
cd "$(dirname "$0")/.." || exit 2
. src/stock.sh
for item in apple pear; do echo "$item $(stock "$item")"; done
