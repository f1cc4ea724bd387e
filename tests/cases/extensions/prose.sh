#!/bin/sh
echo "usage: prose" >&2
echo "I am an extension."
