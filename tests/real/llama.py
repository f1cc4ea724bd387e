"""llama.cpp's own HTTP server out of the xllamacpp wheel: llama.py MODEL.gguf ALIAS PORT KEY. Runs until it is ended.

One thread: on a busy machine two are slower than one.
"""

import sys
import time

import xllamacpp

model, alias, port, key = sys.argv[1:]
params = xllamacpp.CommonParams()
params.model.path = model
params.model_alias = {alias}
params.hostnames = ["127.0.0.1"]
params.port = int(port)
params.api_keys = [key]
params.n_ctx = 4096
params.n_parallel = 1
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
params.use_jinja = True
server = xllamacpp.Server(params)
print(f"{alias} at {server.listening_address}", flush=True)
while True:
    time.sleep(3600)
