#!/bin/sh
# The price of a drink in cents: sh shop.sh NAME
awk -v name="$1" '$1 == name { print $2 }' menu.txt
