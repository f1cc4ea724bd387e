#!/bin/sh
# Every verb, and several ways to answer it; used by the tests of the host.
case "$1 $2" in
"describe ")
  echo '{"on_stop": true, "tools": [{"name": "echo"}, {"name": "env"}, {"name": "send", "confirm": "Really send?"},
         {"name": "fail", "confirm": false}, {"name": "hang", "confirm": false},
         {"name": "count", "confirm": false}]}' ;;
"call echo") cat ;;
"call env") env ;;
"call fail") echo "half done"; echo "no room" >&2; exit 9 ;;
"call count") seq 3000 ;;
"call hang") sleep 60 ;;
"on-stop ")
  stop=$(cat)
  case $stop in
  *'"task":"done"'*) ;;
  *'"task":"more","attempt":2,"changes":3,"messages":[{"role":"user","content":"more"}]'*)
    echo "attempt 2 after 3 changes of: more; and 1 message" ;;
  *'"task":"once","attempt":0,'*) echo "and now the tests" ;;
  *'"task":"once"'*) ;;
  *'"task":"fail"'*) echo "two tests fail"; exit 3 ;;
  *'"task":"silent"'*) exit 3 ;;
  *) echo oops >&2; exit 1 ;;
  esac ;;
esac
