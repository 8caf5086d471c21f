#!/usr/bin/env python3
"""A codec for `stormlog vectors check --exec`: client messages and batches, nothing else.

With `--bug` it writes the flag in the wrong byte order, to show what a mismatch looks like.
"""
import json
import struct
import sys

FLAG_FORMAT = "<i" if "--bug" in sys.argv else ">i"


def encode(message):
    body = bytes.fromhex(message["body"])
    properties = message["properties"].encode()
    if len(properties) > 32767:
        raise ValueError("properties are too long")
    size = 22 + len(body) + len(properties)
    flag = struct.pack(FLAG_FORMAT, message["flag"])
    return struct.pack(">iii", size, 0, 0) + flag + struct.pack(">i", len(body)) + body \
        + struct.pack(">h", len(properties)) + properties


def decode(data):
    messages = []
    while data:
        flag, body_len = struct.unpack_from(">ii", data, 12)
        (properties_len,) = struct.unpack_from(">h", data, 20 + body_len)
        end = 22 + body_len + properties_len
        if body_len < 0 or properties_len < 0 or end > len(data):
            raise ValueError("a length goes beyond the end")
        body, properties = data[20:20 + body_len], data[22 + body_len:end]
        messages.append({"flag": flag, "body": body.hex(), "properties": properties.decode()})
        data = data[end:]
    return messages


def answer(question):
    kind, op = question["kind"], question["op"]
    if op == "encode" and kind in ("client-message", "client-refused"):
        return {"hex": encode(question["input"]).hex()}
    if op == "encode" and kind == "client-batch":
        return {"hex": b"".join(map(encode, question["input"]["messages"])).hex()}
    if op == "decode" and kind == "client-message":
        return {"output": decode(bytes.fromhex(question["hex"]))[0]}
    if op == "decode" and kind == "client-batch":
        return {"output": {"messages": decode(bytes.fromhex(question["hex"]))}}
    if op == "check" and kind == "client-check":
        try:
            return {"output": {"success": True, "messages": len(decode(bytes.fromhex(question["hex"])))}}
        except (ValueError, struct.error):
            return {"output": {"success": False}}
    return {"error": "not supported"}


for line in sys.stdin:
    asked = json.loads(line)
    try:
        given = answer(asked)
    except (ValueError, struct.error) as refusal:
        given = {"error": str(refusal)}
    print(json.dumps({"id": asked["id"], **given}), flush=True)
