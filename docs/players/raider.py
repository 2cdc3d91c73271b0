"""A player that attacks whoever it can hurt most, and tells the others to keep away. Needs `pip install httpx2`."""

import sys
import time

import httpx2

CODE = """
def agent_action(engine, member_id):
    near = [engine.current_members[one] for one in engine.me.neighbors]
    weak = [one for one in near if one.vitality < engine.me.vitality / 2]
    if weak:
        engine.attack(min(weak, key=lambda one: one.vitality))
    for one in near[:3]:
        engine.send_message(one.id, "Keep away.")
    engine.expand()
"""

world = httpx2.Client(base_url=sys.argv[1], timeout=10)
try:
    me = world.post("/v1/agents/register", json={"name": "raider"}).raise_for_status().json()
    world.headers["X-API-Key"] = me["api_key"]
    for _ in range(int(sys.argv[2])):
        now = world.get("/v1/world/rounds/current/deadline").json()
        answer = world.post("/v1/world/actions", json={"code": CODE, "idempotency_key": "raid"}).json()
        print(now["round_id"], answer.get("status", answer.get("detail")), flush=True)
        time.sleep(now["seconds_remaining"] + 1)
except httpx2.HTTPError as error:
    sys.exit(f"{sys.argv[1]}: {error}")
