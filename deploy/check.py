#!/usr/bin/env python3
"""Checks the examples of deployment against each other and against a live server.

    deploy/check.py QUILL [PROMETHEUS]

QUILL is the `quill` program, PROMETHEUS the server (`prometheus` unless said). Needs
kubernetes-validate. Every manifest fits its schema; the ConfigMap is server.yaml, and what
waits for the server to end waits long enough; every metric that rules and dashboard name
is on the server's page; a real Prometheus scrapes the page and answers every query.
"""

import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

import kubernetes_validate
import yaml

DEPLOY = pathlib.Path(__file__).parent
KUBERNETES = "1.31"
FLUSH_SECONDS = 5


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)(ms|s|m)", text).groups()
    return int(number) * {"ms": 0.001, "s": 1, "m": 60}[unit]


def check_manifests():
    by_kind = {}
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        for manifest in yaml.safe_load_all(path.read_text()):
            kubernetes_validate.validate(manifest, KUBERNETES, strict=True)
            by_kind[manifest["kind"]] = manifest
    print("manifests:", ", ".join(sorted(by_kind)))
    return by_kind


def check_agreement(by_kind):
    text = (DEPLOY / "server.yaml").read_text()
    assert by_kind["ConfigMap"]["data"]["server.yaml"] == text, "the ConfigMap is not server.yaml"
    config = yaml.safe_load(text)
    least = seconds(config["drain_delay"]) + seconds(config["drain_limit"]) + FLUSH_SECONDS
    pod = by_kind["Deployment"]["spec"]["template"]["spec"]
    grace = pod["terminationGracePeriodSeconds"]
    assert grace >= least, f"terminationGracePeriodSeconds is {grace}; a drain may take {least} s"
    unit = (DEPLOY / "systemd/quill-demo.service").read_text()
    stop = int(re.search(r"^TimeoutStopSec=(\d+)$", unit, re.M).group(1))
    assert stop >= least, f"TimeoutStopSec is {stop}; a drain may take {least} s"
    ports = {port["name"]: port["containerPort"] for port in pod["containers"][0]["ports"]}
    assert config["listen"].endswith(f":{ports['rpc']}"), ports
    assert config["metrics"]["listen"].endswith(f":{ports['metrics']}"), ports
    probe = pod["containers"][0]["readinessProbe"]
    noticed = probe["periodSeconds"] * probe["failureThreshold"]
    assert seconds(config["drain_delay"]) > noticed, f"a probe notices after {noticed} s"
    print(f"drain: {least:g} s at most, {grace} s given")


def queries():
    """Every query of rules and dashboard, with where it stands."""
    rules = yaml.safe_load((DEPLOY / "prometheus/quill-rules.yaml").read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            yield rule.get("alert") or rule["record"], rule["expr"]
            if "alert" in rule:
                assert rule["annotations"]["runbook"], rule["alert"]
    dashboard = json.loads((DEPLOY / "grafana/quill-server.json").read_text())
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids)), "two panels have one id"
    variables = {v["name"]: v for v in dashboard["templating"]["list"]}
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            expr = target["expr"].replace("$__rate_interval", "1m")
            for name in re.findall(r"\$(\w+)", expr):
                assert variables[name]["allValue"] == ".*", name
                expr = expr.replace(f"${name}", ".*")
            yield panel["title"], expr


def fetch(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode()


def wait_for(what, seconds_max=30):
    end = time.monotonic() + seconds_max
    while True:
        try:
            found = what()
            if found:
                return found
        except (OSError, ValueError):
            pass
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.1)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def check_metrics(page):
    """A histogram's and a counter's names are on the page as its types say."""
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", page, re.M))
    names = set(types)
    for name, kind in types.items():
        if kind == "histogram":
            names |= {f"{name}_bucket", f"{name}_sum", f"{name}_count"}
    used = set()
    for where, expr in queries():
        found = re.findall(r"(?<![:\w])quill_\w+", expr)
        for name in found:
            assert name in names, f"{where}: there is no metric {name}"
        used |= set(found)
    print(f"metrics: {len(used)} names are used, all are there")
    unused = {name for name in types if not any(u.startswith(name) for u in used)}
    assert not unused, f"nothing shows {sorted(unused)}"


def check_queries(prometheus, page_port, folder):
    (folder / "quill-rules.yaml").write_text((DEPLOY / "prometheus/quill-rules.yaml").read_text())
    (folder / "prometheus.yaml").write_text(
        yaml.safe_dump(
            {
                "global": {"scrape_interval": "500ms", "evaluation_interval": "1s"},
                "rule_files": ["quill-rules.yaml"],
                "scrape_configs": [
                    {
                        "job_name": "quill",
                        "static_configs": [{"targets": [f"127.0.0.1:{page_port}"]}],
                    }
                ],
            }
        )
    )
    port = free_port()
    server = subprocess.Popen(
        [
            prometheus,
            f"--config.file={folder}/prometheus.yaml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=error",
        ]
    )
    try:
        def ask(expr):
            query = urllib.parse.urlencode({"query": expr})
            return json.loads(fetch(f"http://127.0.0.1:{port}/api/v1/query?{query}"))

        def samples(expr):
            return ask(expr).get("data", {}).get("result", [])

        wait_for(lambda: samples("rate(quill_server_handled_total[1m]) > 0"), 60)
        recorded = "service_method:quill_server_handled:rate5m"
        wait_for(lambda: samples(recorded))
        empty = []
        for where, expr in queries():
            answer = ask(expr)
            assert answer["status"] == "success", f"{where}: {answer}"
            if not answer["data"]["result"]:
                empty.append(where)
        # An alert that is silent has no samples; all else shows something.
        blank = [where for where in empty if not where.startswith("Quill")]
        assert not blank, f"these show nothing of a server that is called: {blank}"
        print("Prometheus answers every query")
    finally:
        server.terminate()
        server.wait()


def main():
    quill, *others = sys.argv[1:]
    prometheus = others[0] if others else "prometheus"
    check_agreement(check_manifests())
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        port, page_port = free_port(), free_port()
        config = DEPLOY / "server.yaml"
        environment = {
            "QUILL_SERVER_LISTEN": f"127.0.0.1:{port}",
            "QUILL_SERVER_METRICS__LISTEN": f"127.0.0.1:{page_port}",
            "QUILL_SERVER_DRAIN_DELAY": "100ms",
        }
        subprocess.run([quill, "demo", "--config", config, "--check-config"], check=True)
        server = subprocess.Popen(
            [quill, "demo", "--config", config], env=environment, stdout=subprocess.DEVNULL
        )
        try:
            page = f"http://127.0.0.1:{page_port}/metrics"
            wait_for(lambda: fetch(page))
            # The next ones are seen to be more: a rate needs two scrapes.
            calls = subprocess.Popen(
                [
                    "sh",
                    "-c",
                    'while :; do "$0" call "http://127.0.0.1:$1/echo.v1.EchoService/Echo" '
                    "--input '{\"message\":\"a\"}' >/dev/null 2>&1; "
                    '"$0" call "http://127.0.0.1:$1/echo.v1.EchoService/Echo" '
                    "--input '{\"error_code\":13}' >/dev/null 2>&1; done",
                    quill,
                    str(port),
                ]
            )
            try:
                wait_for(lambda: 'code="internal"' in fetch(page))
                check_metrics(fetch(page))
                check_queries(prometheus, page_port, folder)
            finally:
                calls.kill()
                calls.wait()
        finally:
            server.terminate()
            assert server.wait(10) == 0


if __name__ == "__main__":
    main()
