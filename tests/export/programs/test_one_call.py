"""The page on phones and browsers: one call in each language, and how much code is beside it."""

import pathlib
import re

from documents import ROOT, blocks, prose

BROWSER, ANDROID, IOS = (ROOT / "examples" / name for name in ("browser", "android", "ios"))
KOTLIN = ANDROID / "src" / "main" / "kotlin" / "translate"
PAGE = "docs/litert.md"


def with_imports(names, folder):
    """Returns the paths of modules of JavaScript, and of those that they import."""
    paths, left = set(), [folder / name for name in names]
    while left:
        path = left.pop()
        if path not in paths:
            paths.add(path)
            imported = re.findall(r'from "\./([\w.-]+)"', path.read_text("utf-8"))
            left += [folder / name for name in imported]
    return paths


def lines(paths):
    return sum(len(path.read_text("utf-8").splitlines()) for path in paths)


def kotlin_files():
    """The files to copy: all but the user interface."""
    return {path for path in KOTLIN.glob("*.kt") if path.stem != "MainActivity"}


def test_the_page_says_how_much_code_is_beside_the_file():
    rows = re.findall(r"^\| (browser|Android|iOS) \|.*?\| about ([\d,]+) \|", prose(PAGE), re.M)
    stated = {name: int(number.replace(",", "")) for name, number in rows}
    files = {
        "browser": with_imports(["client.js", "worker.js", "translate.js"], BROWSER),
        "Android": kotlin_files(),
        "iOS": [*IOS.glob("*.swift")],
    }
    assert stated == {name: round(lines(paths), -2) for name, paths in files.items()}


def test_the_page_names_what_the_programs_define():
    """The compilers of Kotlin and Swift are not everywhere."""
    code = {block.language: block.code for block in blocks(PAGE) if block.needs}
    client = (BROWSER / "client.js").read_text("utf-8")
    assert "WorkerTranslator.load(" in code["js"] and "static async load(url" in client
    assert "class WorkerTranslator extends WorkerModel" in client
    assert "  translate(sentence) {" in client and ".translate(" in code["js"]
    kotlin = (KOTLIN / "Translator.kt").read_text("utf-8")
    assert "Translator(File(" in code["kotlin"] and "constructor(file: File)" in kotlin
    assert "Translator(assets, " in code["kotlin"]
    assert "constructor(assets: AssetManager, name: String)" in kotlin
    assert "fun translate(sentence: String): Translation" in kotlin
    swift = (IOS / "Translator.swift").read_text("utf-8")
    assert "Translator(path: " in code["swift"] and "public init(path: String) throws" in swift
    assert "public func translate(_ sentence: String) throws -> Translation" in swift
    for fields in (kotlin, swift):
        names = re.findall(r"\b(?:val|let) (text|score|truncated|complete): ", fields)
        assert {*names} == {"text", "score", "truncated", "complete"}


def test_the_page_for_android_names_the_files_to_copy():
    section = prose("docs/android.md").partition("**The files.**")[2].partition("\n\n**")[0]
    cells = re.findall(r"^\| (`.*?) \|", section, re.M)
    named = {name for cell in cells for name in re.findall(r"`(\w+\.kt)`", cell)}
    assert named == {path.name for path in kotlin_files()}


def test_the_page_for_android_has_the_version_of_the_project():
    build = (ANDROID / "build.gradle.kts").read_text("utf-8")
    page = pathlib.Path(ROOT / "docs" / "android.md").read_text("utf-8")
    for line in (r'implementation\("(.*?)"\)', r"(noCompress.*)\+=", r'noCompress \+= ("\w+")'):
        assert {*re.findall(line, page)} == {*re.findall(line, build)}
    (gradle,) = re.findall(r'gradleVersion = "(.*)"', build)
    assert f"Gradle {gradle} " in page
