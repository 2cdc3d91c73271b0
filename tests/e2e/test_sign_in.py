"""People who come in over HTTP: by a one-time link, by a key, from a page of this server alone; and how each ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.harness import Daemon, environment, make_home, run_cli, wait_until
from tests.site import Site, served_site
from tests.world_client import answers, free_port

ME = "/v1/me"


@pytest.fixture(name="site", scope="module")
def _site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with served_site(tmp_path_factory.mktemp("site") / "home") as site:
        site.cli("users", "add", "anna")
        yield site


def test_a_link_signs_a_browser_in_once_and_the_cookie_is_kept_from_scripts_and_other_sites(site: Site) -> None:
    link, browser = site.link("anna"), site.browser()
    shown = browser.get(link)
    assert (shown.status_code, shown.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "council_session" not in browser.cookies, "to look at the link uses nothing up"
    word = link.partition("link=")[2]
    entered = browser.post("/sign-in", data={"word": word, "to": "//evil.example/"})
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    cookie = entered.headers["set-cookie"].lower()
    assert all(said in cookie for said in ("httponly", "samesite=strict", "path=/", "max-age=604800"))
    told = browser.get(ME).json()
    assert (told["id"], told["kind"], told["by"]) == ("anna", "user", "session")
    again = site.browser().post("/sign-in", data={"word": word})
    assert again.status_code == 401
    assert "does not work" in again.text
    assert word not in json.dumps(site.cli("logs", "--json")) + site.cli("audit", "tail", "--json")
    actions = [record["action"] for record in json.loads(site.cli("audit", "tail", "--json"))["records"]]
    assert {"sign_in_link_made", "signed_in"} <= set(actions)


def test_the_pages_open_in_a_browser_where_there_is_one(site: Site, tmp_path: Path) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.part && mv {opened}.part {opened}\n')
    browser.chmod(0o755)
    told = run_cli("ui", cwd=site.home, env=environment(DISPLAY=":9", BROWSER=str(browser)))
    assert (told.returncode, "Press “Sign in” there" in told.stdout) == (0, True), told.stderr
    wait_until(opened.exists, "the browser is started")
    assert opened.read_text().startswith(f"{site.url}/sign-in?link=council-link-")


def test_whoever_is_not_signed_in_gets_a_page_to_do_so_or_a_problem(site: Site) -> None:
    program = httpx2.get(f"{site.url}{ME}")
    assert (program.status_code, program.json()["code"]) == (401, "sign_in_needed")
    page = httpx2.get(f"{site.url}{ME}", headers={"Accept": "text/html"})
    assert page.status_code == 401
    assert f'name="to" value="{ME}"' in page.text
    filtered = httpx2.get(f"{site.url}/runs?status=failed&q=%22%3E", headers={"Accept": "text/html"})
    assert 'name="to" value="/runs?status=failed&amp;q=%22%3E"' in filtered.text
    lost = httpx2.get(f"{site.url}/nowhere/<b>", headers={"Accept": "text/html"})
    assert (lost.status_code, lost.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "There is nothing here" in lost.text
    assert httpx2.get(f"{site.url}/nowhere").json()["code"] == "not_found"
    player = httpx2.get(f"{site.url}{ME}", headers={"X-API-Key": "lev_" + "0" * 48})
    assert (player.status_code, player.json()["code"]) == (401, "sign_in_needed")


def test_a_session_ends_at_sign_out_with_a_revoked_key_and_with_the_last_role(site: Site) -> None:
    out = site.signed_in("anna")
    assert out.get(ME).status_code == 200
    cookies = dict(out.cookies)
    assert out.post("/sign-out").status_code == 303
    assert httpx2.get(f"{site.url}{ME}", cookies=cookies).status_code == 401

    site.cli("users", "add", "bert", "--role", "administrator")
    bert, key = site.signed_in("bert"), site.key("bert")
    by_key = {"X-API-Key": key}
    assert httpx2.get(f"{site.url}{ME}", headers=by_key).json()["kind"] == "administrator"
    listed = json.loads(site.cli("keys", "list", "--json"))["keys"]
    assert [one["owner"] for one in listed] == ["bert"]
    assert key not in site.cli("keys", "list")
    site.cli("keys", "revoke", listed[0]["key_id"])
    assert [bert.get(ME).status_code, httpx2.get(f"{site.url}{ME}", headers=by_key).status_code] == [401, 401]

    again = site.signed_in("bert")
    site.cli("users", "roles", "bert", "--revoke", "administrator")
    refused = again.get(ME)
    assert (refused.status_code, refused.json()["code"]) == (403, "no_principal")


def test_without_pages_there_is_nothing_to_open(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    refused = run_cli("ui", cwd=home)
    assert refused.returncode == 4
    assert "council run --http" in refused.stderr


def test_other_machines_are_served_behind_tls_alone_and_with_keys(tmp_path: Path) -> None:
    home, port = make_home(tmp_path / "home"), free_port()
    settings = f'model = "offline"\nhttp = "0.0.0.0:{port}"\nhttp_hosts = ["council.test"]\n'
    (home / "council.toml").write_text(settings)
    for missing, add in (("behind_tls", "behind_tls = true\n"), ("council keys add", "")):
        refused = run_cli("run", cwd=home)
        assert (refused.returncode, missing in refused.stderr) == (3, True), refused.stderr
        settings += add
        (home / "council.toml").write_text(settings)
    assert run_cli("keys", "add", cwd=home).returncode == 0
    with Daemon(home):
        wait_until(lambda: answers(f"http://127.0.0.1:{port}"), "the server answers")
        link = wait_until(lambda: run_cli("ui", "--print", cwd=home).stdout.strip(), "there is a link")
        assert link.startswith("https://council.test/sign-in?link=")
        said = {"Host": "council.test", "Origin": "https://council.test"}
        url, word = f"http://127.0.0.1:{port}/sign-in", {"word": link.partition("link=")[2]}
        entered = httpx2.post(url, data=word, headers=said)
        assert entered.status_code == 303
        assert "secure" in entered.headers["set-cookie"].lower()
