"""How claims were asked when their results were first seen; what changes afterwards is told in their history, for good.

    PYTHONPATH=lib python tests/claims_seen.py      # takes in new claims, and changes that the history tells
"""

import json
from pathlib import Path

from compendium import ledger, project
from compendium.cells import short

ROOT = Path(__file__).parents[1]
SEEN = Path(__file__).with_name("claims_seen.json")


def judged(root=ROOT):
    """Claims with results that someone may have seen, id -> how they are asked and what their history tells."""
    ids = set(ledger.read(root / "figures" / "ledger.csv").id)
    return {id: {"region": list(map(str, claim.region)), "readings": sorted(claim.others), "ours": claim.ours,
                 "repairs": sorted(claim.repairs), "history": [short(told) for told in claim.history]}
            for id, claim in project.claims(root).items() if id in ids}


def untold(seen, now):
    """What has changed since results were seen, and no sentence of the history tells."""
    for id, then in seen.items():
        claim = now.get(id)
        if claim is None:
            yield f"{id}: the claim is gone"
        elif claim["history"][:len(then["history"])] != then["history"]:
            yield f"{id}: a sentence of its history has changed or is gone"
        elif claim != then and len(claim["history"]) == len(then["history"]):
            what = ", ".join(name for name in then if claim[name] != then[name])
            yield f"{id}: {what} changed after results were seen, and its history does not say so"


def main():
    now = judged()
    seen = json.loads(SEEN.read_text()) if SEEN.exists() else {}
    faults = list(untold(seen, now))
    if faults:
        raise SystemExit("\n".join(faults))
    lines = (f"{json.dumps(id)}: {json.dumps(claim)}" for id, claim in now.items())
    SEEN.write_text("{" + ",\n ".join(lines) + "}\n")
    new = ", ".join(id for id in now if now[id] != seen.get(id))
    print(f"taken in: {new or 'nothing new; a claim waits for its row in figures/ledger.csv (make all)'}")


if __name__ == "__main__":
    main()
