#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what a bundle (bundle.sh) is made of as an SPDX 2.3 document in JSON, out of its own lists and this machine's dpkg.

usage: sbom.py VERSION ARCH BUNDLE > hearth.spdx.json

Every file of the bundle is there with its sums, every library with the package it is from. Licences are those that packages' copyright
files name in their machine-readable form, as comments: only a person can say what they come to. The same bundle makes the same document.
"""
import hashlib
import json
import os
import re
import subprocess
import sys
import time

NOBODY = "NOASSERTION"
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
OWN_LICENCE = "Apache-2.0 AND (GPL-2.0-only OR BSD-2-Clause)"


def sums(path):
    with open(path, "rb") as f:
        data = f.read()
    return [{"algorithm": name.upper(), "checksumValue": hashlib.new(name, data).hexdigest()} for name in ("sha1", "sha256")]


def ident(kind, name):
    return "SPDXRef-%s-%s" % (kind, re.sub(r"[^A-Za-z0-9.-]", "-", name.replace("+", "plus")))


def distro():
    with open("/etc/os-release", encoding="utf-8") as f:
        values = dict(line.rstrip().replace('"', "").split("=", 1) for line in f if "=" in line)
    return values.get("ID", "debian"), values.get("VERSION_CODENAME", "")


def field(package, name):
    done = subprocess.run(["dpkg-query", "-W", "-f", "${%s}\n" % name, package], capture_output=True, text=True, check=False)
    return done.stdout.split("\n")[0]


def licences(package):
    path = "/usr/share/doc/%s/copyright" % package
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8", errors="replace") as f:
        text = f.read()
    return sorted(set(re.findall(r"^License: *(\S.*)$", text, re.M))) if "copyright-format" in text else []


def library_package(name, version, arch):
    system, suite = distro()
    source = field(name, "source:Package") or name
    who = field(name, "Maintainer")
    found = licences(name)
    purl = "pkg:deb/%s/%s@%s?arch=%s&distro=%s" % (system, name, version.replace("+", "%2B").replace(":", "%3A"), arch, suite)
    return {
        "SPDXID": ident("Package", name), "name": name, "versionInfo": version, "supplier": "Person: " + who if who else NOBODY,
        "downloadLocation": NOBODY, "filesAnalyzed": False, "licenseConcluded": NOBODY, "licenseDeclared": NOBODY, "copyrightText": NOBODY,
        "sourceInfo": "built from Debian's source package " + source,
        **({"licenseComments": "the package's copyright file names: " + ", ".join(found)} if found else {}),
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}],
    }


def main():
    version, arch, bundle = sys.argv[1:]
    owners = {}
    with open(os.path.join(bundle, "LIBRARIES"), encoding="utf-8") as f:
        for line in f:
            name, package, package_version = line.split()
            owners["lib/" + name] = (package, package_version)
    files, relations, all_sha1 = [], [], []
    for folder, below, names in os.walk(bundle):
        below.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            inside = os.path.relpath(path, bundle)
            checks = sums(path)
            all_sha1.append(checks[0]["checksumValue"])
            files.append({"SPDXID": ident("File", inside), "fileName": "./" + inside, "checksums": checks, "licenseConcluded": NOBODY,
                          "licenseInfoInFiles": [NOBODY], "copyrightText": NOBODY})
            if inside in owners:
                relations.append((ident("File", inside), "GENERATED_FROM", ident("Package", owners[inside][0])))
    code = hashlib.sha1("".join(sorted(all_sha1)).encode()).hexdigest()
    hearth = {
        "SPDXID": "SPDXRef-Package-hearth", "name": "hearth", "versionInfo": version, "supplier": NOBODY, "downloadLocation": NOBODY,
        "filesAnalyzed": True, "packageVerificationCode": {"packageVerificationCodeValue": code}, "licenseConcluded": NOBODY,
        "licenseDeclared": OWN_LICENCE, "licenseInfoFromFiles": [NOBODY], "copyrightText": NOBODY, "primaryPackagePurpose": "APPLICATION",
        "hasFiles": [f["SPDXID"] for f in files],
    }
    packages = [library_package(*p, arch) for p in sorted(set(owners.values()))]
    relations += [("SPDXRef-Package-hearth", "DEPENDS_ON", p["SPDXID"]) for p in packages]
    json.dump({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "hearth-%s-%s" % (version, arch),
        "documentNamespace": "https://hearth.invalid/spdx/hearth-%s-%s-%s" % (version, arch, code),
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH)), "creators": ["Tool: hearth-tools/package/sbom.py"]},
        "documentDescribes": ["SPDXRef-Package-hearth"], "packages": [hearth] + packages, "files": files,
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
                          for a, kind, b in [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-Package-hearth")] + relations],
    }, sys.stdout, indent=1, sort_keys=True)
    print()


main()
