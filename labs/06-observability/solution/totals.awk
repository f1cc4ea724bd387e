# Exercise B: how often each tool was called, how often that failed, and how
# long it took in all. Reads the events of --json, or a session log.
#
#     mini --json "fix calc.sh" | awk -f totals.awk
#
# awk has no JSON parser, and needs none here: the events have their members in
# a fixed order. The time is looked for at the end of the line, since a tool's
# text may hold anything; quotes in it have a backslash before them.

/^\{"type":"result"/ {
    match($0, /"name":"[^"]*","ok":(true|false)/)
    split(substr($0, RSTART, RLENGTH), member, "\"")
    match($0, /"ms":[0-9]+,"at":[0-9]+,"agent":[^,]*\}$/)
    ms = substr($0, RSTART + 5) + 0
    tool = member[4]
    calls[tool]++
    failed[tool] += (member[7] == ":false")
    total[tool] += ms
}

END {
    printf "%-12s %6s %6s %9s\n", "tool", "calls", "failed", "seconds"
    for (tool in calls)
        printf "%-12s %6d %6d %9.2f\n", tool, calls[tool], failed[tool], \
            total[tool] / 1000
}
