# sh fork.sh ID: a second session with the same past. Prints its id.
#
# Only whole lines are copied: what was torn by a crash, or is being written at
# this moment, belongs to the other one. ID.files/ is not copied: what a task
# changed can be taken back once, by the session that did it.
set -eu
logs="${XDG_STATE_HOME:-$HOME/.local/state}/mini/sessions"
case "$1" in *[!0-9a-z-]* | '') echo "fork: $1 is no id" >&2; exit 2 ;; esac
[ -f "$logs/$1.jsonl" ] || { echo "fork: there is no session $1" >&2; exit 2; }
umask 077
salt=$(awk 'BEGIN { srand(); printf "%06x", rand() * 16777216 }')
new="$(date -u +%Y%m%d-%H%M%S)-$salt"
set -C # an id that is taken is an error
awk -v old="\"session\":\"$1\"" -v new="\"session\":\"$new\"" '
    /}$/ { at = index($0, old)
           if (at && /"type":"start"/)
               $0 = substr($0, 1, at - 1) new substr($0, at + length(old))
           print }' "$logs/$1.jsonl" > "$logs/$new.jsonl"
echo "$new"
