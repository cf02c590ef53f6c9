"""CI with the real tools. Usage: python run.py TOCTOU"""

import functools
import hashlib
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TOCTOU = Path(sys.argv[1]).resolve()
TOOLS = Path(sys.executable).parent
RACY = ROOT / "testbed/typescript/racy/notes-file"
REPAIRED = ROOT / "testbed/typescript/repaired/notes-file"

failed = 0


def check(what, ok, seen=""):
    global failed
    print(f"{'ok    ' if ok else 'FAILED'} {what}")
    if not ok:
        failed += 1
        print(seen)


def run(command, cwd=ROOT, env=None):
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    return done.returncode, done.stdout


def schemas(scratch):
    validate = [TOOLS / "check-jsonschema", "--builtin-schema"]
    code, said = run([*validate, "vendor.github-actions", ROOT / "action.yml"])
    check("action.yml is an action", code == 0, said)
    code, said = run([TOOLS / "pre-commit", "validate-manifest", ROOT / ".pre-commit-hooks.yaml"])
    check(".pre-commit-hooks.yaml is a manifest", code == 0, said)

    text = (ROOT / "docs/ci.md").read_text()
    kinds = {
        "github": "vendor.github-workflows",
        "gitlab": "vendor.gitlab-ci",
    }
    seen = set()
    for number, (kind, snippet) in enumerate(re.findall(r"```yaml (\w+)\n(.*?)```", text, re.S)):
        path = scratch / f"snippet-{number}.yaml"
        path.write_text(snippet)
        if kind == "precommit":
            code, said = run([TOOLS / "pre-commit", "validate-config", path])
        else:
            code, said = run([*validate, kinds[kind], path])
        seen.add(kind)
        check(f"docs/ci.md: snippet {number + 1} is a {kind} file", code == 0, said)
    check("docs/ci.md has a snippet of each kind", seen == {"github", "gitlab", "precommit"}, seen)
    broken = scratch / "broken.yml"
    broken.write_text((ROOT / "action.yml").read_text().replace("using: composite", "using: magic"))
    code, _ = run([*validate, "vendor.github-actions", broken])
    check("a broken action is told apart", code != 0)


def steps():
    """The shell steps of the action, as written, with their environment."""
    text = (ROOT / "action.yml").read_text()
    scripts = re.findall(r"scripts/action/\w+", text)
    check("the action's scripts exist", len(scripts) == 2 and all((ROOT / s).is_file() for s in scripts), scripts)
    inside = re.findall(r"^ *run: .*\$\{\{.*$", text, re.M)
    check("no input is put into the text of a script", not inside, inside)


def runner(scratch, **more):
    """What a runner puts into the environment of a step."""
    files = {}
    for name in ("GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY"):
        path = scratch / name
        path.write_text("")
        files[name] = str(path)
    return {
        "PATH": f"{TOCTOU.parent}:{os.environ['PATH']}",
        "HOME": str(scratch),
        "GITHUB_ACTION_PATH": str(ROOT),
        "RUNNER_TEMP": str(scratch / "temp"),
        "RUNNER_OS": "Linux",
        "RUNNER_ARCH": "X64",
        **files,
        **more,
    }


def scan(scratch):
    step = [ROOT / "scripts/action/scan"]
    project = scratch / "project with spaces"
    shutil.copytree(RACY, project)
    env = runner(scratch, TOCTOU_PATHS=f"{project}\n", TOCTOU_FAIL_ON="high")
    code, said = run(step, cwd=scratch, env=env)
    outputs = dict(line.split("=", 1) for line in Path(env["GITHUB_OUTPUT"]).read_text().splitlines())
    check("scan: the step goes on, its outputs say 1", code == 0 and outputs.get("exit-code") == "1", (code, outputs, said))
    check("scan: annotations are in the log", "::error file=" in said, said)
    sarif = json.loads((scratch / outputs["sarif-file"]).read_text())
    check("scan: the report has the findings", len(sarif["runs"][0]["results"]) > 0)
    check("scan: the summary is written", "## toctou" in Path(env["GITHUB_STEP_SUMMARY"]).read_text())

    env = runner(scratch, TOCTOU_PATHS=str(REPAIRED))
    run(step, cwd=scratch, env=env)
    check("scan: a clean server is 0", "exit-code=0" in Path(env["GITHUB_OUTPUT"]).read_text())

    env = runner(scratch, TOCTOU_PATHS="nowhere; touch pwned\n$(touch pwned)", TOCTOU_PERSONA="x --exit-zero")
    code, said = run(step, cwd=scratch, env=env)
    text = Path(env["GITHUB_OUTPUT"]).read_text()
    check("scan: a failure is 2, and no old report is uploaded", text.strip() == "exit-code=2", (text, said))
    check("scan: inputs are not run", not (scratch / "pwned").exists())


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def install(scratch):
    step = [ROOT / "scripts/action/install"]
    release = scratch / "releases/v9.9.9"
    release.mkdir(parents=True)
    name = "toctou-x86_64-unknown-linux-gnu.tar.gz"
    with tarfile.open(release / name, "w:gz", compresslevel=1) as archive:
        archive.add(TOCTOU, arcname="toctou")
    digest = hashlib.sha256((release / name).read_bytes()).hexdigest()
    (release / f"{name}.sha256").write_text(f"{digest}  {name}\n")
    handler = functools.partial(Quiet, directory=str(scratch / "releases"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    releases = f"http://127.0.0.1:{server.server_port}"
    plain = {"PATH": os.environ["PATH"], "TOCTOU_RELEASES": releases}

    env = runner(scratch, **plain, TOCTOU_VERSION="v9.9.9")
    code, said = run(step, env=env)
    added = Path(env["GITHUB_PATH"]).read_text().strip()
    check("install: a release is put on PATH", code == 0 and (Path(added) / "toctou").is_file(), said)

    (release / f"{name}.sha256").write_text(f"{'0' * 64}  {name}\n")
    shutil.rmtree(scratch / "temp")
    env = runner(scratch, **plain, TOCTOU_VERSION="v9.9.9")
    code, said = run(step, env=env)
    check("install: a wrong checksum fails", code == 2 and not Path(env["GITHUB_PATH"]).read_text(), said)

    for version in ("v9.9.8", "v1/../../x", "latest", "v9.9.9; touch pwned"):
        code, said = run(step, env=runner(scratch, **plain, TOCTOU_VERSION=version))
        check(f"install: {version!r} fails", code == 2 and "::error" in said, (code, said))
    code, said = run(step, env={**runner(scratch, **plain, TOCTOU_VERSION="v9.9.9"), "RUNNER_OS": "Plan9"})
    check("install: an unknown system fails", code == 2 and "Plan9" in said, (code, said))
    server.shutdown()
    code, said = run(step, env=runner(scratch, TOCTOU_VERSION="path"))
    check("install: the toctou on PATH", code == 0, said)


def pre_commit(scratch):
    project = scratch / "committed"
    project.mkdir()
    env = {
        "PATH": f"{TOCTOU.parent}:{TOOLS}:{os.environ['PATH']}",
        "HOME": str(scratch),
        "PRE_COMMIT_HOME": str(scratch / "pre-commit"),
        "GIT_CONFIG_NOSYSTEM": "1",
    }

    def git(*args, cwd=project):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
        return run(["git", *identity, *args], cwd=cwd, env=env)

    # The hook is taken from a repository: this tree's manifest, committed.
    hooks = scratch / "hooks"
    hooks.mkdir()
    shutil.copy(ROOT / ".pre-commit-hooks.yaml", hooks)
    git("init", "-q", cwd=hooks)
    git("add", "-A", cwd=hooks)
    git("commit", "-q", "-m", "hooks", cwd=hooks)
    _, revision = git("rev-parse", "HEAD", cwd=hooks)

    git("init", "-q")
    (project / ".pre-commit-config.yaml").write_text(
        f"repos:\n  - repo: {hooks}\n    rev: {revision.strip()}\n    hooks:\n"
        "      - id: toctou\n        args: [--since, HEAD]\n"
    )
    (project / "README.md").write_text("hello\n")
    git("add", "-A")
    git("commit", "-q", "-m", "first")
    code, said = run([TOOLS / "pre-commit", "install"], cwd=project, env=env)
    check("pre-commit: the hook is installed", code == 0, said)

    shutil.copytree(RACY, project / "src")
    git("add", "-A")
    code, said = git("commit", "-m", "racy")
    check("pre-commit: a racy server is refused", code != 0 and "file-read-modify-write" in said, said)
    shutil.rmtree(project / "src")
    shutil.copytree(REPAIRED, project / "src")
    git("add", "-A")
    code, said = git("commit", "-m", "repaired")
    check("pre-commit: a repaired one is committed", code == 0, said)
    # Past the hook: what is there already does not hold up the next commit.
    shutil.copytree(RACY, project / "old")
    git("add", "-A")
    git("commit", "-q", "--no-verify", "-m", "old")
    (project / "src/extra.ts").write_text("export const answer = 42;\n")
    git("add", "-A")
    code, said = git("commit", "-m", "more")
    check("pre-commit: what was there before does not count", code == 0, said)
    (project / "NOTES.md").write_text("no code\n")
    git("add", "-A")
    code, said = git("commit", "-m", "prose")
    check("pre-commit: nothing is scanned for prose", code == 0 and "Skipped" in said, said)


with tempfile.TemporaryDirectory(prefix="toctou-ci-") as folder:
    for number, part in enumerate((schemas, scan, install, pre_commit)):
        scratch = Path(folder).resolve() / str(number)
        scratch.mkdir()
        part(scratch)
    steps()

sys.exit(1 if failed else 0)
