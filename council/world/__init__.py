"""The world: members on a torus of land, played by outside programs over HTTP (Leviathan, phase 2)."""
