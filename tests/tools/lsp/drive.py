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
