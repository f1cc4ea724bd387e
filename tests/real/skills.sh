#!/bin/sh
# Opt-in: holds mini's reading of SKILL.md against the format's own validator (PyPI skills-ref), shape by shape.
#
#   python3 -m venv DIR && DIR/bin/pip install skills-ref==0.1.1
#   sh tests/real/skills.sh DIR/bin/agentskills target/debug/mini
#
# A shape is a name, what the validator says and what mini says. They differ on purpose in one: fields that the format does
# not know are an error for an author's validator, and no reason not to read a skill.
validator=${1:?usage: skills.sh VALIDATOR MINI}
mini=${2:?usage: skills.sh VALIDATOR MINI}
room=$(mktemp -d) && trap 'rm -rf "$room"' EXIT
checked=0 differ=0

# shape NAME VALIDATOR MINI FRONT-MATTER (with printf's escapes)
shape() {
    rm -rf "$room/skills" && mkdir -p "$room/skills/$1"
    printf -- "---\n$4\n---\n\nBody.\n" >"$room/skills/$1/SKILL.md"
    if "$validator" validate "$room/skills/$1" >/dev/null 2>&1; then theirs=yes; else theirs=no; fi
    # A skill that is left out offers no tool: the call fails.
    if "$mini" --workspace "$room" --no-session --quiet --ext "skills=$room/skills" \
        --call load_skill "{\"name\":\"$1\"}" >/dev/null 2>&1; then ours=yes; else ours=no; fi
    checked=$((checked + 1))
    if [ "$theirs $ours" != "$2 $3" ]; then
        echo "$1: expected validator $2, mini $3; got $theirs, $ours"
        differ=$((differ + 1))
    fi
}

long=$(awk 'BEGIN { for (i = 0; i < 1024; i++) printf "x" }')
name64=$(awk 'BEGIN { for (i = 0; i < 64; i++) printf "n" }')

shape plain yes yes 'name: plain\ndescription: Use it.'
shape folded yes yes 'name: folded\ndescription: >-\n  Use it\n  so.'
shape literal yes yes 'name: literal\ndescription: |\n  Use it\n  so.'
shape quoted yes yes 'name: quoted\ndescription: "Use it so: like this"'
shape single yes yes "name: single\ndescription: 'It is so: fine'"
shape wrapped yes yes 'name: wrapped\ndescription: Use it\n  so and so.'
shape comment yes yes '# about\nname: comment\ndescription: Use it. # more'
shape license yes yes 'name: license\ndescription: Use it.\nlicense: MIT\ncompatibility: any'
shape metadata yes yes 'name: metadata\ndescription: Use it.\nmetadata:\n  author: x\n  version: "1.0"'
shape allowed yes yes 'name: allowed\ndescription: Use it.\nallowed-tools: Read Bash'
shape "$name64" yes yes "name: $name64\ndescription: Use it."
shape most yes yes "name: most\ndescription: $long"
shape bare-colon no no 'name: bare-colon\ndescription: Use it so: like this'
shape nameless no no 'description: Use it.'
shape undescribed no no 'name: undescribed'
shape empty no no 'name: empty\ndescription: ""'
shape other no no 'name: another\ndescription: Use it.'
shape Capital no no 'name: Capital\ndescription: Use it.'
shape two--hyphens no no 'name: two--hyphens\ndescription: Use it.'
shape -first no no 'name: -first\ndescription: Use it.'
shape last- no no 'name: last-\ndescription: Use it.'
shape under_score no no 'name: under_score\ndescription: Use it.'
shape "${name64}n" no no "name: ${name64}n\ndescription: Use it."
shape too-much no no "name: too-much\ndescription: ${long}x"
shape listed yes yes 'name: listed\ndescription: Use it.\nallowed-tools:\n  - Read\n  - Bash'
shape unknown no yes 'name: unknown\ndescription: Use it.\nmodel: large\nuser-invocable: true'

echo "$checked shapes, $differ differ"
[ "$checked" -gt 0 ] && [ "$differ" = 0 ]
