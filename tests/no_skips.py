"""A pytest plugin: with CI=true a skipped test is a failure, since continuous integration has everything."""

import os

import pytest


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if os.environ.get("CI") == "true" and skipped:
        reporter.write("\n")  # behind the dots
        for report in skipped:
            reporter.write_line(f"skipped in CI: {report.nodeid}: {report.longrepr[2]}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
