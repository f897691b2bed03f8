#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks an SPDX 2.3 document in JSON: the fields that the specification asks for, their forms, that all references lead somewhere, and
that its files are those of a tar, with their sums. Python's spdx-tools, where it is there, has the last word.

usage: sbom.py DOCUMENT TAR
"""
import hashlib
import json
import re
import sys
import tarfile

document, tar = sys.argv[1:]
with open(document, encoding="utf-8") as f:
    d = json.load(f)
assert d["spdxVersion"] == "SPDX-2.3" and d["dataLicense"] == "CC0-1.0" and d["SPDXID"] == "SPDXRef-DOCUMENT" and d["name"]
assert re.fullmatch(r"https?://\S+", d["documentNamespace"]) and "#" not in d["documentNamespace"]
assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", d["creationInfo"]["created"])
assert all(re.match(r"(Tool|Person|Organization): ", c) for c in d["creationInfo"]["creators"])
ids = [d["SPDXID"]] + [e["SPDXID"] for kind in ("packages", "files") for e in d[kind]]
assert len(ids) == len(set(ids)), "ids that are there twice"
assert all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", i) for i in ids)
for r in d["relationships"]:
    assert r["spdxElementId"] in ids and r["relatedSpdxElement"] in ids, r
    assert r["relationshipType"] in ("DESCRIBES", "DEPENDS_ON", "GENERATED_FROM"), r
for p in d["packages"]:
    assert p["name"] and p["versionInfo"] and p["versionInfo"] != "unknown" and p["downloadLocation"], p
    assert "packageVerificationCode" in p if p["filesAnalyzed"] else "packageVerificationCode" not in p, p
    for ref in p.get("externalRefs", []):
        assert re.fullmatch(r"pkg:deb/[a-z]+/[a-z0-9.+-]+@\S+\?arch=\w+&distro=\w*", ref["referenceLocator"]), ref
listed = {f["fileName"][2:]: {c["algorithm"]: c["checksumValue"] for c in f["checksums"]} for f in d["files"]}
with tarfile.open(tar) as t:
    there = {m.name.split("/", 1)[1]: t.extractfile(m).read() for m in t if m.isfile()}
assert set(listed) == set(there), set(listed) ^ set(there)
for name, data in there.items():
    assert listed[name] == {"SHA1": hashlib.sha1(data).hexdigest(), "SHA256": hashlib.sha256(data).hexdigest()}, name
code = hashlib.sha1("".join(sorted(f["SHA1"] for f in listed.values())).encode()).hexdigest()
assert d["packages"][0]["packageVerificationCode"]["packageVerificationCodeValue"] == code
of_packages = {r["spdxElementId"] for r in d["relationships"] if r["relationshipType"] == "GENERATED_FROM"}
missing = [f["fileName"] for f in d["files"] if ".so" in f["fileName"] and f["SPDXID"] not in of_packages]
assert not missing, "libraries of no package: %s" % missing
try:
    from spdx_tools.spdx.parser.parse_anything import parse_file
    from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
    messages = validate_full_spdx_document(parse_file(document))
    assert not messages, [m.validation_message for m in messages][:5]
    print("  %s: valid for spdx-tools, %d packages, %d files" % (d["name"], len(d["packages"]), len(listed)))
except ImportError:
    print("  %s: well-formed, %d packages, %d files" % (d["name"], len(d["packages"]), len(listed)))
