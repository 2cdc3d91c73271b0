"""Pictures of pages, with values: the land, a course over rounds, the map of places, a list in parts, marked words."""

from __future__ import annotations

from xml.etree import ElementTree

from council.web.pagination import slice_from, slice_of
from council.web.region_map import HEIGHT, WIDTH, known_places, places_with
from council.web.steward_pages import pieces_of
from council.web.window_pictures import MapMember, course_picture, land_picture

SVG = "{http://www.w3.org/2000/svg}"


def shapes(svg: str, tag: str, kind: str) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(svg)
    return [one for one in root.iter() if one.tag.removeprefix(SVG) == tag and one.get("class") == kind]


def test_members_lie_on_their_cells_in_the_shade_of_their_vitality_and_players_wear_a_number() -> None:
    members = [
        MapMember(1, 95.0, 3.0, 20, (0, 1, 2, 5), "Heron <b>"),
        MapMember(2, 5.0, 0.0, 60, (4,)),
    ]
    svg = land_picture((5, 2), members)
    (strong,), (weak,) = shapes(svg, "path", "v5"), shapes(svg, "path", "v1")
    assert strong.get("d") == "M0 0h384v128h-384zM0 128h128v128h-128z", "cells beside one another are one shape"
    assert weak.get("d") == "M512 0h128v128h-128z"
    assert [one.text for one in shapes(svg, "text", "on mid")] == ["1"]
    assert "<b>" not in svg


def test_a_large_world_is_drawn_in_one_shape_for_each_shade() -> None:
    members = [MapMember(number, number % 100, 0.0, 1, (number,)) for number in range(2_000)]
    svg = land_picture((50, 41), members)
    assert len([one for one in ElementTree.fromstring(svg).iter() if one.tag.removeprefix(SVG) == "path"]) == 5
    assert len(svg) < 60_000


def test_a_course_tells_its_first_and_last_value_and_rounds_without_the_figure_are_left_out() -> None:
    rounds = [{"round_id": 1, "births": 2}, {"round_id": 2}, {"round_id": 3, "births": 8}]
    svg = course_picture("births", rounds)
    assert "Round 1: 2. Round 3: 8. Lowest 2, highest 8." in svg
    assert shapes(svg, "path", "course")[0].get("d", "").count("L") == 1
    assert course_picture("deaths", rounds) == ""


def test_every_place_lies_on_the_map_and_those_with_events_are_drawn_last() -> None:
    assert len(known_places()) > 250
    assert all(0 <= place.x <= WIDTH for place in known_places())
    sofia = next(place for place in known_places() if place.name == "Sofia")
    assert (sofia.zone, round(sofia.x), round(sofia.y)) == ("Europe/Sofia", 203, 37)
    assert all(0 <= place.y <= HEIGHT for place in known_places())
    last = places_with({"sofia": 2, "The valley": 1})[-1]
    assert (last.name, last.events) == ("Sofia", 2)


def test_a_part_that_is_not_there_is_the_nearest_one() -> None:
    rows = list(range(101))
    assert [slice_of(rows, {"notes": asked}, "notes").number for asked in ("1", "3", "99", "0", "-1", "x", "9" * 30)] == [
        1, 3, 3, 1, 1, 1, 3,
    ]  # fmt: skip
    last = slice_of(rows, {"notes": "3"}, "notes")
    assert (list(last.rows), last.parts, last.of) == ([100], 3, 101)
    assert slice_of([], {}, "notes").parts == 1
    read = slice_from(107, lambda first, count: [first, count], {"notes": "3"}, "notes")
    assert (read.rows, read.number, read.parts, read.of) == ([100, 50], 3, 3, 107), "only these rows are read"


def test_words_of_a_question_are_marked_in_whatever_ending() -> None:
    marked = [piece for piece, is_hit in pieces_of("Storage engines store <b>data</b>.", "storage engine a.") if is_hit]
    assert marked == ["Storage", "engines"]
    assert "".join(piece for piece, _ in pieces_of("as it is", "storage")) == "as it is"
    assert pieces_of("all of it", "a b") == [("all of it", False)]
