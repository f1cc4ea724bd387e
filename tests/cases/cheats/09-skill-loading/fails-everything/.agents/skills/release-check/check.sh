#!/bin/sh
# Checks a script.
echo bad
exit 1
