"""A player in 20 lines: it takes land, and feeds its poorest neighbour. Needs `pip install httpx2`."""

import sys
import time

import httpx2

CODE = """
def agent_action(engine, member_id):
    engine.expand()
    near = [engine.current_members[one] for one in engine.me.neighbors]
    if near and engine.me.cargo > 20:
        engine.offer(min(near, key=lambda one: one.vitality), 5)
"""

world = httpx2.Client(base_url=sys.argv[1], timeout=10)
try:
    me = world.post("/v1/agents/register", json={"name": "settler"}).raise_for_status().json()
    world.headers["X-API-Key"] = me["api_key"]
    for _ in range(int(sys.argv[2])):
        now = world.get("/v1/world/rounds/current/deadline").json()
        answer = world.post("/v1/world/actions", json={"code": CODE, "idempotency_key": "settle"}).json()
        print(now["round_id"], answer.get("status", answer.get("detail")), flush=True)
        time.sleep(now["seconds_remaining"] + 1)
except httpx2.HTTPError as error:
    sys.exit(f"{sys.argv[1]}: {error}")
