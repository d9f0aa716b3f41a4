"""A real llama.cpp on loopback: its own HTTP server over a model of a few megabytes that is made here. What the model
says is noise, words drawn at random until it ends; what the server counts, refuses, caches and calls itself is true.

The vocabulary is a real one: the first tokens of a published one (the beginning of a byte-pair vocabulary is one, too).
Needs the packages xllamacpp, gguf and numpy, which are for this alone: whoever uses it skips without them.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from math import log
from pathlib import Path
from typing import Any, NamedTuple

NEEDED = ("xllamacpp", "gguf", "numpy")
START, END = "<|im_start|>", "<|im_end|>"
CALL, CALLED, THINK, THOUGHT = "<tool_call>", "</tool_call>", "<think>", "</think>"
SPECIAL = (START, END, CALL, CALLED, THINK, THOUGHT)

TEMPLATE = """\
{%- macro words(content) -%}
{%- if content is string -%}{{ content }}
{%- elif content -%}{%- for block in content -%}{{ block.text or '' }}{%- endfor -%}{%- endif -%}
{%- endmacro -%}
{%- if tools -%}
{{ '<|im_start|>system\\nTools:\\n' }}{%- for tool in tools -%}{{ (tool | tojson) + '\\n' }}{%- endfor -%}
{{ 'Call one as <tool_call>{"name": ..., "arguments": {...}}</tool_call>.<|im_end|>\\n' }}
{%- endif -%}
{%- for message in messages -%}
{{ '<|im_start|>' + message.role + '\\n' + words(message.content) }}
{%- if message.tool_calls -%}{%- for call in message.tool_calls -%}
{{ '<tool_call>{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments if call.function.arguments is string else (call.function.arguments | tojson) }}
{{- '}</tool_call>' }}
{%- endfor -%}{%- endif -%}
{{ '<|im_end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}
"""
"""Messages one after the other, each between two special tokens, as many models of today are trained."""


WITHOUT_TOOLS = """\
{%- if messages[0].role == 'system' -%}{%- set first = messages[0].content + '\\n\\n' -%}
{%- set rest = messages[1:] -%}{%- else -%}{%- set first = '' -%}{%- set rest = messages -%}{%- endif -%}
{%- for message in rest -%}
{%- if (message.role == 'user') != (loop.index0 % 2 == 0) -%}{{ raise_exception('roles must alternate') }}{%- endif -%}
{{ '<|im_start|>' + message.role + '\\n' + (first if loop.first else '') + message.content + '<|im_end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}
"""
"""As Gemma's: the system prompt stands before the first message, roles alternate, and there are no tools."""


def missing() -> str | None:
    """Why there is no llama.cpp; None where there is."""
    absent = [name for name in NEEDED if find_spec(name) is None]
    return f"not installed: {', '.join(absent)} (pip install {' '.join(NEEDED)})" if absent else None


class Vocabulary(NamedTuple):
    """Tokens by rank, and llama.cpp's name of what cuts a text before they are looked for."""

    ranks: Sequence[bytes]
    cut: str


def o200k(size: int = 24_000) -> Vocabulary:
    """The first tokens of GPT-4o's."""
    from agent_tui.providers.counting import encoding

    return Vocabulary([encoding().decode_single_token_bytes(rank) for rank in range(size)], "gpt-4o")


def tekken(size: int = 130_000) -> Vocabulary:
    """Mistral's, which takes digits one by one; of the package mistral-common."""
    data = Path(str(import_module("mistral_common").__file__)).parent / "data" / "tekken_240911.json"
    told = json.loads(data.read_text("utf-8"))
    most = min(size, told["config"]["default_vocab_size"] - told["config"]["default_num_special_tokens"])
    return Vocabulary([base64.b64decode(token["token_bytes"]) for token in told["vocab"][:most]], "tekken")


def _merges(ranks: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """The two tokens that each longer one is made of: what is left when all that come before it are merged."""
    place = {token: rank for rank, token in enumerate(ranks)}
    for token, own in place.items():
        parts = [token[n : n + 1] for n in range(len(token))]
        while len(parts) > 2:
            pairs = [place.get(parts[n] + parts[n + 1], own) for n in range(len(parts) - 1)]
            if (lowest := min(pairs)) >= own:
                break
            at = pairs.index(lowest)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        if len(parts) == 2:
            yield parts[0], parts[1]


def _letters() -> dict[int, str]:
    """GPT-2's way to write any byte as a letter."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {byte: chr(byte) for byte in shown} | {byte: chr(256 + n) for n, byte in enumerate(hidden)}


def make_model(
    to: Path,
    vocabulary: Vocabulary,
    *,
    words: int = 12,
    window: int = 131_072,
    name: str = "tiny-random",
    template: str = TEMPLATE,
) -> None:
    """Writes a model that says about so many ``words`` and ends. It looks at nothing: each token has its own chance."""
    numpy, gguf = import_module("numpy"), import_module("gguf")
    letters = _letters()

    def written(token: bytes) -> str:
        return "".join(letters[byte] for byte in token)

    tokens = [*SPECIAL, *map(written, vocabulary.ranks)]
    kinds = [3 if token.startswith("<|") else 4 for token in SPECIAL] + [1] * len(vocabulary.ranks)
    wide, narrow = 64, 32
    out = gguf.GGUFWriter(str(to), "llama")
    out.add_name(name)
    out.add_context_length(window)
    out.add_embedding_length(wide)
    out.add_feed_forward_length(wide)
    out.add_block_count(1)
    out.add_head_count(2)
    out.add_head_count_kv(1)
    out.add_rope_dimension_count(narrow)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_file_type(1)
    out.add_vocab_size(len(tokens))
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre(vocabulary.cut)
    out.add_token_list(tokens)
    out.add_token_types(kinds)
    out.add_token_merges([f"{written(a)} {written(b)}" for a, b in _merges(vocabulary.ranks)])
    out.add_bos_token_id(SPECIAL.index(START))
    out.add_eos_token_id(SPECIAL.index(END))
    out.add_add_bos_token(False)
    out.add_chat_template(template)
    # One number of the state is the same for every token: an output row of it alone is that token's chance.
    state = numpy.zeros((len(tokens), wide), numpy.float16)
    state[:, 0] = 1
    said = [
        n for n, token in enumerate(tokens) if token[:1] == "\u0120" and token[1:].isascii() and token[1:].isalpha()
    ]
    chances = numpy.full(len(tokens), -100.0)
    chances[said] = 0.0
    chances[SPECIAL.index(END)] = log(len(said) / words)
    rows = numpy.zeros((len(tokens), wide), numpy.float16)
    rows[:, 0] = chances / wide**0.5
    out.add_tensor("token_embd.weight", state)
    out.add_tensor("output.weight", rows)
    for norm in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        out.add_tensor(f"{norm}.weight", numpy.ones(wide, numpy.float32))
    shapes = {"attn_k": narrow, "attn_v": narrow, "attn_q": wide, "attn_output": wide}
    for part, size in {**shapes, "ffn_gate": wide, "ffn_up": wide, "ffn_down": wide}.items():
        out.add_tensor(f"blk.0.{part}.weight", numpy.zeros((size, wide), numpy.float16))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


@contextmanager
def serving(model: Path, window: int = 8_192, *, slots: int = 1, key: str | None = None) -> Iterator[str]:
    """The server's address, in a process of its own. ``window``: tokens of each of its ``slots``."""
    settings = json.dumps({"model": str(model), "window": window * slots, "slots": slots, "key": key})
    root = Path(__file__).resolve().parents[2]
    paths = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.support.llama", settings],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": paths},
    )
    try:
        assert child.stdout is not None
        address = next((line.split()[1] for line in child.stdout if line.startswith("serving ")), None)
        if address is None:
            raise RuntimeError(f"llama.cpp did not start (status {child.wait()})")
        yield address
    finally:
        child.kill()
        child.wait()


def _serve(settings: Mapping[str, Any]) -> None:
    """Serves until its standard input ends: it must not outlive who asked for it."""
    llama = import_module("xllamacpp")
    asked = llama.CommonParams()
    asked.model.path = settings["model"]
    asked.port = 0
    asked.n_ctx, asked.n_parallel = settings["window"], settings["slots"]
    asked.cpuparams.n_threads = asked.cpuparams_batch.n_threads = 1
    asked.n_threads_http = 4
    asked.use_jinja, asked.warmup = True, False
    asked.endpoint_slots = asked.endpoint_props = True
    asked.sampling.temp, asked.sampling.top_p, asked.sampling.min_p, asked.sampling.top_k = 1.0, 1.0, 0.0, 0
    if settings["key"]:
        asked.api_keys = [settings["key"]]
    server = llama.Server(asked)
    print("serving", server.listening_address, flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    _serve(json.loads(sys.argv[1]))
