"""Drives sinter lsp as an editor does: drive.py SINTER FOLDER."""
import json
import os
import subprocess
import sys

sinter, folder = sys.argv[1], os.path.abspath(sys.argv[2])
os.makedirs(folder, exist_ok=True)


class Server:
    def __init__(self):
        self.process = subprocess.Popen([sinter, "lsp"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.number = 0
        self.published = {}

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.raw(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def raw(self, text):
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def read(self):
        length = None
        while (line := self.process.stdout.readline()) != b"\r\n":
            assert line, "the server has ended"
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return json.loads(self.process.stdout.read(length))

    def ask(self, method, **params):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        while True:
            message = self.read()
            if message.get("id") == self.number:
                return message.get("result", message.get("error"))
            self.take(message)

    def take(self, message):
        assert message["method"] == "textDocument/publishDiagnostics", message
        params = message["params"]
        self.published[params["uri"]] = params["diagnostics"]

    def tell(self, method, **params):
        self.send({"method": method, "params": params})

    def open(self, uri, text):
        self.tell("textDocument/didOpen", textDocument={
            "uri": uri, "languageId": "net", "version": 1, "text": text})
        self.take(self.read())
        return self.published[uri]

    def change(self, uri, text):
        self.tell("textDocument/didChange",
                  textDocument={"uri": uri, "version": 2},
                  contentChanges=[{"text": "not this"}, {"text": text}])
        self.take(self.read())
        return self.published[uri]

    def at(self, method, uri, line, character):
        return self.ask(f"textDocument/{method}", textDocument={"uri": uri},
                        position={"line": line, "character": character})

    def of(self, method, uri, **params):
        return self.ask(f"textDocument/{method}", textDocument={"uri": uri},
                        **params)

    def end(self):
        self.ask("shutdown")
        self.tell("exit")
        assert self.process.wait(10) == 0


def span(range_):
    start, end = range_["start"], range_["end"]
    return (start["line"], start["character"], end["line"], end["character"])


uri = "file://" + folder.replace(" ", "%20") + "/net%20one.net"
blocks = "file://" + folder.replace(" ", "%20") + "/blocks.net"
with open(folder + "/blocks.net", "w") as f:
    f.write("# blocks\nfn wide(x, channels=8) = x |> linear(channels) |> relu\n")
good = """import "blocks.net" { wide }

# größer 🙂
model Net(image: u8[N, 28, 28, 1], width=16) -> f32[N, 10] {
  h = image |> flatten |> linear(width)
  h |> wide(32) |> linear(10)
}

train Net {
  data      = idx("data/mnist")
  batch     = 100
  epochs    = 1
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
}
"""

s = Server()
capabilities = s.ask("initialize", processId=None, rootUri=None,
                     capabilities={})["capabilities"]
assert capabilities["textDocumentSync"]["change"] == 1
s.tell("initialized")

# Diagnostics: none, one with its columns in UTF-16, one of an imported file.
assert s.open(uri, good) == [], s.published
wrong = good.replace("linear(10)", "linaer(10)").replace("h |> wide", "h |> 🙂 wide")
assert s.change(uri, wrong)
wrong = good.replace("h |> wide(32) |> linear(10)", "h |> wide(32) |> linaer(10)")
(found,) = s.change(uri, wrong)
assert found["severity"] == 1 and found["code"].startswith("E"), found
assert span(found["range"]) == (5, 19, 5, 25), found
assert "linear" in found["message"] and found["source"] == "sinter"
(action,) = s.of("codeAction", uri, range=found["range"],
                 context={"diagnostics": [found]})
(edit,) = action["edit"]["changes"][uri]
assert edit["newText"] == "linear" and edit["range"] == found["range"], edit
assert action["isPreferred"], action
assert s.of("codeAction", uri, context={}, range={
    "start": {"line": 0, "character": 0},
    "end": {"line": 0, "character": 2}}) == []
page = s.at("hover", uri, 5, 20)["contents"]["value"]
assert page.startswith(found["code"]), page
(units,) = s.change(uri, good.replace("# größer 🙂", "let 🙂 = 3"))[:1]
assert span(units["range"])[:2] == (2, 4), units
(shapes,) = s.change(uri, good.replace("f32[N, 10] {", "f32[N, 11] {"))
assert "10" in shapes["message"], shapes

# Hover: shapes and costs of a line, forms of functions.
assert s.change(uri, good) == []
value = s.at("hover", uri, 4, 27)["contents"]["value"]
assert "linear(x, channels" in value and "| linear_1 | [N, 16] | 12560 |" in value
value = s.at("hover", uri, 5, 8)["contents"]["value"]
assert "wide(x, channels=8)" in value and "| linear_3 | [N, 10] |" in value
assert s.at("hover", uri, 1, 0) is None
hints = s.of("inlayHint", uri, range={"start": {"line": 0, "character": 0},
                                      "end": {"line": 99, "character": 0}})
shown = {h["position"]["line"]: h["label"] for h in hints}
assert shown[4] == "[N, 16]" and shown[5] == "[N, 10]", shown

# Definitions, here and in the imported file; symbols; completion.
here = s.at("definition", uri, 8, 7)
assert here["uri"] == uri and span(here["range"]) == (3, 6, 3, 9), here
there = s.at("definition", uri, 5, 8)
assert there["uri"] == blocks and span(there["range"]) == (1, 3, 1, 7), there
assert s.at("definition", uri, 2, 0) is None
symbols = s.of("documentSymbol", uri)
assert [x["name"] for x in symbols] == ["Net", "train Net"], symbols
assert span(symbols[0]["range"]) == (3, 6, 6, 1), symbols
labels = {x["label"] for x in s.at("completion", uri, 10, 2)}
assert {"optimizer", "adamw", "wide", "model", "epochs"} <= labels
labels = {x["label"] for x in s.at("completion", uri, 4, 2)}
assert "batch_norm" in labels and "epochs" not in labels

# Formatting: one edit of the whole text, or none.
assert s.of("formatting", uri, options={}) == []
assert s.change(uri, good.replace("h = image", "h=image")) == []
(edit,) = s.of("formatting", uri, options={})
assert edit["newText"] == good
s.change(uri, "model (")
assert s.of("formatting", uri, options={}) == []

# Uses of a name: where it has the same meaning, and nowhere else.
names = """let size = 8

fn block(x, size=3, act=relu) {
  y = x |> conv(size, 3)
  fn twice(z) = y + z
  y = y |> batch_norm
  y |> twice |> act
}

model Net(image: u8[N, 32, 32, 3], width=size) -> f32[N, 10] {
  y = image |> block(size=width) |> block(size, act=gelu)
  for size in [1, 2] { y = y |> linear(size) }
  size, _ = [[size, y] for size, y in [[8, 2]] if y > size][0]
  y |> linear(if size > 4 { size } else { 10 })
}

train Net {
  data      = synthetic()
  batch     = 4 * size
  epochs    = 1
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
}
"""
net = "file://" + folder.replace(" ", "%20") + "/names.net"


def renamed(line, character, name):
    result = s.of("rename", net, newName=name,
                  position={"line": line, "character": character})
    if "changes" not in result:
        return result["code"]
    lines = names.split("\n")
    for edit in reversed(result["changes"][net]):
        line, start, _, end = span(edit["range"])
        lines[line] = lines[line][:start] + edit["newText"] + lines[line][end:]
    return "\n".join(lines)


s.change(uri, good)
s.open(net, names)
param = names
for old, new in (("(x, size", "(x, part"), ("conv(size", "conv(part"),
                 ("(size=", "(part=")):
    param = param.replace(old, new)
assert renamed(2, 12, "part") == renamed(3, 18, "part") == param
assert renamed(10, 23, "part") == param
assert renamed(0, 8, "part") == names.replace("let size", "let part").replace(
    "width=size", "width=part").replace("k(size,", "k(part,").replace(
        "4 * size", "4 * part")
assert renamed(12, 14, "part") == names.replace(
    "[[size, y] for size,", "[[part, y] for part,").replace("y > size", "y > part")
assert renamed(11, 7, "part") == renamed(12, 2, "part") == renamed(
    13, 20, "part") == names.replace(
    "for size in [1", "for part in [1").replace("linear(size)", "linear(part)").replace(
        "  size, _", "  part, _").replace("if size > 4 { size", "if part > 4 { part")
assert renamed(4, 16, "h") == names.replace("  y = x", "  h = x").replace(
    "= y +", "= h +").replace("  y = y |> batch", "  h = h |> batch").replace(
        "  y |> twice", "  h |> twice")
assert renamed(16, 7, "Other") == names.replace(" Net", " Other")
assert renamed(10, 16, "part") == names.replace("block", "part")
assert renamed(4, 6, "part") == names.replace("twice", "part")
assert renamed(2, 20, "f") == names.replace("act", "f")
for name in ("relu", "model", "1x", "x y", "width", "synthetic", "", "x\n", "\u00e9"):
    assert renamed(2, 12, name) == -32803, name
assert s.of("rename", net, position={"line": 2, "character": 12})["code"] == -32803
for line, character in ((3, 13), (1, 0), (9, 21), (17, 3)):
    assert renamed(line, character, "part") == -32803
    assert s.at("prepareRename", net, line, character) is None
assert span(s.at("prepareRename", net, 3, 17)) == (3, 16, 3, 20)
lines = [span(x["range"])[0] for x in s.at("documentHighlight", net, 0, 5)]
assert lines == [0, 9, 10, 18], lines
lines = [span(x["range"])[0] for x in s.of(
    "references", net, position={"line": 0, "character": 5},
    context={"includeDeclaration": False})]
assert lines == [9, 10, 18], lines
found = s.of("references", uri, position={"line": 5, "character": 8},
             context={"includeDeclaration": True})
assert [span(x["range"]) for x in found] == [(0, 22, 0, 26), (5, 7, 5, 11)]
assert s.of("rename", uri, position={"line": 5, "character": 8},
            newName="part")["code"] == -32803
assert s.change(net, "model (") and s.at("documentHighlight", net, 0, 0) == []

# A client that makes mistakes.
assert s.ask("textDocument/nothing", textDocument={"uri": uri})["code"] == -32601
assert s.ask("workspace/symbol")["code"] == -32601
assert s.of("hover", "file:///nowhere.net", position={}) is None
for line, character in ((-1, -1), (10 ** 12, 0), (0, 10 ** 9), (3, 10 ** 4)):
    s.at("hover", uri, line, character)
for body in (b"", b"{", b"[]", b"null", b"{}", b'{"method":3}',
             b'{"id":1}', b'{"method":"textDocument/didOpen"}',
             b'{"method":"textDocument/didOpen","params":{"textDocument":'
             b'{"uri":7,"text":[]}}}', b'{"method":"\\ud800","id":1}',
             b"\xff\xfe" * 50, b'{"a":' * 5000,
             b'{"method":"textDocument/didChange","params":[[[[', b"\0\0"):
    s.raw(b"Content-Length: %d\r\nOther: x\r\n\r\n%s" % (len(body), body))
long = "file:///" + "x" * 5000 + ".net"
assert s.open(long, "model") != []
assert s.open(uri, "x" * 3_000_000)
assert s.open(uri, good.replace("width=16", "width=16000000")) is not None
assert s.open(uri, "fn f(x) = " + "(" * 3000) != []
assert s.change(uri, good) == []
s.tell("textDocument/didClose", textDocument={"uri": uri})
s.take(s.read())
assert s.published[uri] == []
s.end()

# Without a shutdown the status says so; a closed pipe ends it too.
s = Server()
s.tell("exit")
assert s.process.wait(10) == 1
s = Server()
s.ask("initialize")
s.process.stdin.close()
assert s.process.wait(10) == 1
s = Server()
s.raw(b"Content-Length: 99999999999999\r\n\r\n")
assert s.process.wait(10) == 1
print("good")
