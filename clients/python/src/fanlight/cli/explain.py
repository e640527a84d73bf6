"""`fanlight explain`: who gets a message on this topic, found in which tier of the index and by which rows; and for
one client, why not.
"""

import argparse
import json
from typing import Any

from . import exits, spelling, text
from .http import Views


def run(options: argparse.Namespace) -> int:
    syntax = spelling.of_topic(options, options.topic)
    query: dict[str, str | int] = {"topic": options.topic, "syntax": syntax}
    if options.client:
        query["client"] = options.client
    if options.fields is not None:
        query["fields"] = options.fields
    answer = Views(options.http, options.ca, options.cert, options.key).get("/explain", **query)
    print(json.dumps(answer, ensure_ascii=False) if options.json else "\n".join(explained(answer)))
    return exits.OK  # also when nobody gets it: that was the answer


def explained(answer: dict[str, Any]) -> list[str]:
    """The answer as lines; whatever key is missing is left out."""
    words = answer.get("words") or []
    matches = answer.get("matches") or []
    count = answer.get("total", len(matches))
    out = [f"{answer.get('topic', '')!r} ({answer.get('syntax', 'amqp')}): {len(words)} words: {words}"]
    out.append(f"{count} matching subscription{'' if count == 1 else 's'}" + (":" if matches else ""))
    for match in matches:
        out.append(_subscription(match))
        if match.get("reason"):
            out.append(f"    {text.shown(str(match['reason']))}")
    if len(matches) < count:
        out.append(f"  ... and {count - len(matches)} more")
    if "filtered" not in answer and any(match.get("where") for match in matches):
        out.append("whether a selector is true depends on the message: give its --fields")
    out += _filtered(answer)
    out += _why_not(answer.get("client") or {})
    return out


def _subscription(view: dict[str, Any]) -> str:
    group = f", group {view['group']!r}" if view.get("group") else ""
    where = f" where {text.shown(str(view['where']))}" if view.get("where") else ""
    number = view.get("connection", "?")
    who = f"{text.shown(str(view.get('client', '?')))} ({'away' if number is None else f'connection {number}'})"
    return f"  {text.shown(str(view.get('filter', '?')))} ({view.get('syntax', '?')}{group}){where} for {who}"


def _filtered(answer: dict[str, Any]) -> list[str]:
    """Those whose selector is not true of the fields that were given."""
    if "filtered" not in answer:
        return []
    found = answer["filtered"] or []
    count = answer.get("filtered_total", len(found))
    plural = "" if count == 1 else "s"
    out = [f"{count} subscription{plural} of the topic whose selector is not true" + (":" if found else "")]
    for each in found:
        out += [_subscription(each), f"    {text.shown(str(each.get('reason', '?')))}"]
    if len(found) < count:
        out.append(f"  ... and {count - len(found)} more")
    return out


def _why_not(client: dict[str, Any]) -> list[str]:
    if not client:
        return []
    name = text.shown(str(client.get("name", "?")))
    if not client.get("known", client.get("connected")):
        alike = [text.shown(str(each)) for each in client.get("alike") or []]
        return [f"there is no client or session {name}" + (f"; there is: {', '.join(alike)}" if alike else "")]
    reasons = client.get("why_not") or []
    notes = [f"  but: {text.shown(str(each))}" for each in client.get("notes") or []]
    matching = client.get("matching", 0)
    plural = "subscription" if matching == 1 else "subscriptions"
    out = [f"{name} gets it by {matching:,} {plural}" if matching else f"{name} gets it by none of its subscriptions"]
    out += notes
    if not reasons:
        return out
    out += [f"{name} does not get it by:"] + [
        f"  {text.shown(str(each.get('filter', '?')))}: {text.shown(str(each.get('reason', '?')))}" for each in reasons
    ]
    if (more := client.get("why_not_total", len(reasons)) - len(reasons)) > 0:
        out.append(f"  ... and {more} more")
    return out
