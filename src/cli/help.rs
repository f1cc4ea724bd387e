//! The help pages. Each fits one screen (80 columns, 24 to 40 lines); a test in `options.rs` keeps them complete.

/// `mini --help`
pub const MAIN: &str = "\
mini: a minimal coding agent. A model proposes, a program executes, a gate decides.

  mini                        talk
  mini TASK…                  one task; the answer goes to stdout
  git diff | mini 'review'    piped input is joined to the task; @FILE includes a file
  mini --yes TASK             approve what would ask
  mini --plan TASK            look and propose; nothing changes
  mini --lab                  labs: how an agent works, offline (see --help labs)

Endpoint (or MINI_BASE_URL, MINI_API_KEY, MINI_MODEL; see the README for others)
  --base-url URL              an OpenAI-compatible server, such as http://localhost:11434/v1
  --model NAME                the model; may be left out if the server has only one
  --api-key-env NAME          the variable that holds the key
Run
  --workspace DIR             where the agent works (default: here)
  --ext NAME[=ARG] | PATH     add an extension, built in or an executable
  --sandbox                   commands write only here, and no network (Linux)
  --max-turns N  --token-budget N  --max-cost USD  --timeout S  --context-window N
  --continue, --resume ID     go on with the newest session here, or with another
  --no-session                keep no session under ~/.local/state/mini
  --no-rules                  do not read the project's AGENTS.md
Watch
  --json                      every event as a line of JSON on stdout
  --quiet, -q                 the answer, and how it ended if not done
  --wire                      show requests and the stream
  --step                      wait for Enter before each request and call
  --talk                      talk over any stdin, line by line
  --record FILE               keep what the server says, as a recording
  --replay FILE               answers from a recording instead of a server
Look
  --doctor                    check the endpoint and this machine (exit 0, 1)
  --why COMMAND               RUN, ASK or REFUSE, and why (exit 0, 4, 1); rules for it
                              can be put into ~/.config/mini/permissions.json
  --sessions                  what was worked on, here and elsewhere
  --diff, --undo              show or take back what the last task did to files
  --eval CASES --versions A,B compare versions of the agent on fixed cases (0, 1, 2)
  --call TOOL JSON            run one tool call through the gate, without a model
  --trace FILE                a log or recording as a tree: time, tokens, errors
  --help [labs]  --version

Exit: 0 done · 1 error · 2 usage or configuration · 3 a limit · 4 an approval
was needed and nobody could give it · 5 not verified · 130 interrupted
";

/// `mini --help labs`
pub const LABS: &str = "\
Labs show how an agent works inside. They need no key and no network.

  mini --lab                  list them
  mini --lab 05               play one: at the prompt, 1, 2 or Enter plays a sample
  mini --lab 10 --continue    go on with a run of it that was cut off
  mini --lab 05 TASK          one task in it (a task of your own needs a real model)
  mini --lab 05 --hint        the next hint for its exercise
  mini --lab 01 --why COMMAND the gate's verdict in the lab's demo (RUN, ASK, REFUSE)
  mini --lab 05 --check       the exam (exit 0 passed, 1 not, 2 cannot run)
  mini --lab 05 --solution    the reference solution; changes no file
  mini --lab 05 --reset       the demo as shipped
  mini --lab all --check      one line a lab
  mini --lab 01 --serve       the exam for an agent of your own (labs 01, 05)

  --offline                   the recorded model, even if an endpoint is set up
  --step, --wire              stop before each request and call; see the bytes

A lab's files are staged in ./mini-labs (--workspace DIR for another place).
";

/// What `mini TASK` says when no endpoint is set up.
pub const NO_ENDPOINT: &str = "\
no endpoint is set up. Name one, for example:
  export MINI_BASE_URL=http://localhost:11434/v1 MINI_MODEL=…   (Ollama; no key)
  export OPENAI_API_KEY=… OPENAI_MODEL=…                        (OpenAI)
  mini --base-url URL --model NAME --api-key-env VARIABLE       (any other)
or put MINI_BASE_URL, MINI_API_KEY and MINI_MODEL into ~/.config/mini/env.
To see an agent work without one: mini --lab 05";
