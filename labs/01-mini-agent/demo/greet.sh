#!/bin/sh
# Says hello to the world, or to a name: sh greet.sh NAME
echo "hello, ${1:-world}"
