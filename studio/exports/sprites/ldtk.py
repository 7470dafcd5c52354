"""Save a tile set as an LDtk project: the tileset, a layer of terrains with a rule for each tile, and a sample level.

See ldtk.io/json. Tiles with terrains at their corners lie between the cells of the layer, half a tile up and left. An
enum tags each tile with its terrains.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studio.data.tiles.tile_set import ANY, CENTRE, CORNERS, NO_TILE
from studio.exports.sprites.base import SpriteExport, SpriteSet
from studio.exports.sprites.cells import free_label
from studio.exports.sprites.tile_sheet import COUNTED, TileSheet

_VERSION = "1.5.3"  # version of LDtk's format
_TILESET, _LAYER, _RULES, _LEVEL, _ENUM, _FIRST_RULE = range(1, 7)  # unique identifiers (uid) of the project's parts
_NOTHING = -1_000_001  # in a rule: the cell must be empty
_BACKGROUND = "#40465B"
_CORNER_CELLS = (0, 1, 3, 4)  # cells of a 3 x 3 rule that meet at a corner tile: upper left, upper, left, centre


class LdtkProject(SpriteExport):
    name = "ldtk"
    title = "LDtk project (.ldtk and PNG)"
    suffix = ".ldtk"
    companions = (".png",)
    help = "For LDtk: a project with the tileset, a layer whose rules choose the tiles, and a sample level."
    order = 23
    saves_tiles = True

    def contents(self, sprites: SpriteSet, target: Path) -> Mapping[Path, bytes]:
        plan = TileSheet.of(sprites)
        sheet = target.with_suffix(self.companions[0])
        project = _Project(plan, sheet.name).json()
        return {target: (json.dumps(project, indent="\t") + "\n").encode(), sheet: plan.picture}


class _Project:
    """Builds the JSON of a project. sheet: file name of the picture."""

    def __init__(self, plan: TileSheet, sheet: str) -> None:
        self._plan, self._sheet, self._size = plan, sheet, plan.size
        self._tiles = plan.tile_set
        self._shift = plan.size // 2 if self._tiles.by_corners else 0  # pixels from a cell up and left to its tile
        self._digest = hashlib.sha256(plan.picture).hexdigest()
        # By terrain, its value in the layer; transparency has the value 0, an empty cell.
        self._values = [plan.terrains.index(name) + 1 if name else 0 for name in self._tiles.terrains]
        self._rules = self._number_rules()  # uid of the rule by tile
        used = set[str]()
        self._labels = list[str]()  # LDtk's identifier of each terrain, unique and without special characters
        for name in plan.terrains:
            label = free_label(re.sub(r"\W", "_", name, flags=re.ASCII).lstrip("0123456789") or "terrain", used)
            used.add(label)
            self._labels.append(label)

    def json(self) -> dict[str, Any]:
        terrain_map, index = self._plan.sample()
        height, width = (length * self._size for length in terrain_map.shape)
        pivots = {"defaultPivotX": 0, "defaultPivotY": 0}
        defaults = {"defaultGridSize": self._size, "defaultEntityWidth": self._size, "defaultEntityHeight": self._size}
        return {
            "__header__": {"fileType": "LDtk Project JSON", "app": "LDtk", "appVersion": _VERSION},
            "iid": self._iid("project"), "jsonVersion": _VERSION, "appBuildId": 0,
            "nextUid": _FIRST_RULE + len(self._rules), "identifierStyle": "Free", "toc": [],
            "worldLayout": "Free", "worldGridWidth": width, "worldGridHeight": height,
            "defaultLevelWidth": width, "defaultLevelHeight": height, **pivots, **defaults,
            "bgColor": _BACKGROUND, "defaultLevelBgColor": _BACKGROUND, "minifyJson": False, "externalLevels": False,
            "exportTiled": False, "simplifiedExport": False, "imageExportMode": "None", "exportLevelBg": True,
            "pngFilePattern": None, "backupOnSave": False, "backupLimit": 10, "backupRelPath": None,
            "levelNamePattern": "Level_%idx", "tutorialDesc": None, "customCommands": [], "flags": [],
            "defs": {
                "layers": [self._layer()], "entities": [], "tilesets": [self._tileset()],
                "enums": [self._enum()], "externalEnums": [], "levelFields": [],
            },
            "levels": [self._level(terrain_map, index)], "worlds": [], "dummyWorldIid": self._iid("world"),
        }  # fmt: skip

    def _tileset(self) -> dict[str, Any]:
        grid = self._plan.grid
        rows, shown = -(-grid.count // grid.columns), self._plan.points
        tags = [
            {"enumValueId": label, "tileIds": np.flatnonzero((shown == number).any(1)).tolist()}
            for number, label in enumerate(self._labels)
        ]
        return {
            "identifier": "Tiles", "uid": _TILESET, "relPath": self._sheet, "embedAtlas": None,
            "__cWid": grid.columns, "__cHei": rows, "pxWid": grid.columns * self._size, "pxHei": rows * self._size,
            "tileGridSize": self._size, "spacing": 0, "padding": 0, "tags": [], "tagsSourceEnumUid": _ENUM,
            "enumTags": tags, "customData": [], "savedSelections": [], "cachedPixelData": None,
        }  # fmt: skip

    def _enum(self) -> dict[str, Any]:
        """Return the enum whose values tag the tiles with their terrains."""
        numbers = [int.from_bytes(bytes(colour)) for colour in self._plan.colours]
        values = [
            {"id": label, "tileRect": None, "tileId": None, "color": number, "__tileSrcRect": None}
            for label, number in zip(self._labels, numbers, strict=True)
        ]
        return {
            "identifier": "Terrain", "uid": _ENUM, "values": values, "iconTilesetUid": None, "externalRelPath": None,
            "externalFileChecksum": None, "tags": [],
        }  # fmt: skip

    def _layer(self) -> dict[str, Any]:
        values = [
            {"value": number, "identifier": label, "color": "#{:02X}{:02X}{:02X}".format(*colour), "tile": None,
             "groupUid": 0}
            for number, (label, colour) in enumerate(zip(self._labels, self._plan.colours, strict=True), 1)
        ]  # fmt: skip
        group = {
            "uid": _RULES, "name": "Tiles", "color": None, "icon": None, "active": True, "isOptional": False,
            "rules": [self._rule(tile, chance) for tile, chance in self._chances()], "usesWizard": False,
            "requiredBiomeValues": [], "biomeRequirementMode": 0,
        }  # fmt: skip
        return {
            "__type": "IntGrid", "identifier": "Terrains", "type": "IntGrid", "uid": _LAYER, "doc": None,
            "uiColor": None, "gridSize": self._size, "guideGridWid": 0, "guideGridHei": 0, "displayOpacity": 1,
            "inactiveOpacity": 1, "hideInList": False, "hideFieldsWhenInactive": False, "canSelectWhenInactive": True,
            "renderInWorldView": True, "pxOffsetX": 0, "pxOffsetY": 0, "parallaxFactorX": 0, "parallaxFactorY": 0,
            "parallaxScaling": True, "requiredTags": [], "excludedTags": [], "autoTilesKilledByOtherLayerUid": None,
            "uiFilterTags": [], "useAsyncRender": False, "intGridValues": values, "intGridValuesGroups": [],
            "autoRuleGroups": [group], "autoSourceLayerDefUid": None, "tilesetDefUid": _TILESET, "tilePivotX": 0,
            "tilePivotY": 0, "biomeFieldUid": None,
        }  # fmt: skip

    def _number_rules(self) -> dict[int, int]:
        """Return the uid of the rule by tile, in the order of the rules: tiles with fewer open places come first.

        Transparent tiles have no rule.
        """
        is_seen = self._tiles.tiles[..., 3].max((1, 2)) > 0
        openness = (self._tiles.places == ANY).sum(1)
        order = [tile for tile in np.argsort(openness, kind="stable").tolist() if is_seen[tile]]
        return {tile: _FIRST_RULE + number for number, tile in enumerate(order)}

    def _chances(self) -> list[tuple[int, float]]:
        """Return (tile, chance of its rule) for each rule, in the order of the rules.

        LDtk applies the first fitting rule. The last of several variants therefore has a chance of 1.
        """
        left: dict[bytes, float] = {}
        found = []
        for tile in reversed(self._rules):
            weight = float(self._tiles.weights[tile])
            key = self._tiles.places[tile].tobytes()
            left[key] = left.get(key, 0.0) + weight
            found.append((tile, weight / left[key] if left[key] else 0.0))
        return found[::-1]

    def _rule(self, tile: int, chance: float) -> dict[str, Any]:
        """Return the rule that draws a tile in fitting cells, with a chance from 0 to 1."""
        places, pattern, outside = self._tiles.places[tile].tolist(), [0] * 9, None
        if self._tiles.by_corners:
            counted = list(zip(_CORNER_CELLS, (places[place] for place in CORNERS), strict=True))
        else:
            counted = [(place, places[place]) for place in COUNTED[self._tiles.kind]]
            outside = self._values[places[CENTRE]]  # the map's border goes on outside
        for cell, terrain in counted:
            if terrain != ANY:
                pattern[cell] = self._values[terrain] or _NOTHING
        return {
            "uid": self._rules[tile], "active": True, "size": 3, "tileIds": [tile], "tileRectsIds": [[tile]],
            "alpha": 1, "chance": round(chance, 6), "breakOnMatch": True, "pattern": pattern, "flipX": False,
            "flipY": False, "xModulo": 1, "yModulo": 1, "xOffset": 0, "yOffset": 0, "tileXOffset": -self._shift,
            "tileYOffset": -self._shift, "tileRandomXMin": 0, "tileRandomXMax": 0, "tileRandomYMin": 0,
            "tileRandomYMax": 0, "checker": "None", "tileMode": "Single", "pivotX": 0, "pivotY": 0,
            "outOfBoundsValue": outside, "invalidated": False, "perlinActive": False, "perlinSeed": 0,
            "perlinScale": 0.2, "perlinOctaves": 2,
        }  # fmt: skip

    def _level(self, terrain_map: NDArray[np.int8], index: NDArray[np.int64]) -> dict[str, Any]:
        """Return a level with the terrains of a map, int8 [H, W], and its tiles: int64 [H', W']."""
        rows, columns = terrain_map.shape
        values = np.array(self._values)[terrain_map]
        layer = {
            "__identifier": "Terrains", "__type": "IntGrid", "__cWid": columns, "__cHei": rows,
            "__gridSize": self._size, "__opacity": 1, "__pxTotalOffsetX": 0, "__pxTotalOffsetY": 0,
            "__tilesetDefUid": _TILESET, "__tilesetRelPath": self._sheet, "iid": self._iid("layer"),
            "levelId": _LEVEL, "layerDefUid": _LAYER, "pxOffsetX": 0, "pxOffsetY": 0, "visible": True,
            "optionalRules": [], "intGridCsv": values.ravel().tolist(), "autoLayerTiles": self._placed(index, columns),
            "seed": 1, "overrideTilesetUid": None, "gridTiles": [], "entityInstances": [],
        }  # fmt: skip
        return {
            "identifier": "Sample", "iid": self._iid("level"), "uid": _LEVEL, "worldX": 0, "worldY": 0,
            "worldDepth": 0, "pxWid": columns * self._size, "pxHei": rows * self._size, "__bgColor": _BACKGROUND,
            "bgColor": None, "useAutoIdentifier": False, "bgRelPath": None, "bgPos": None, "bgPivotX": 0.5,
            "bgPivotY": 0.5, "__smartColor": "#ADADB5", "__bgPos": None, "externalRelPath": None, "fieldInstances": [],
            "layerInstances": [layer], "__neighbours": [],
        }  # fmt: skip

    def _placed(self, index: NDArray[np.int64], columns: int) -> list[dict[str, Any]]:
        """Return the drawn tiles of a level, which LDtk stores beside the rules. index: int64 [H', W']."""
        grid, found = self._plan.grid, []
        first = int(self._tiles.by_corners)
        for (row, column), tile in np.ndenumerate(index):
            if tile != NO_TILE and int(tile) in self._rules:
                x, y = column + first, row + first
                below, right = divmod(int(tile), grid.columns)
                found.append({
                    "px": [x * self._size - self._shift, y * self._size - self._shift],
                    "src": [right * self._size, below * self._size],
                    "f": 0, "t": int(tile), "d": [self._rules[int(tile)], x + y * columns], "a": 1,
                })  # fmt: skip
        return found

    def _iid(self, part: str) -> str:
        """Return the global identifier (iid) of a part of the project; equal pictures have equal identifiers."""
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self._digest} {part}"))
