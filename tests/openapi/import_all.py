"""Imports every module of the one package in this folder: a name that shadows another or is missing fails here."""

import importlib
import pathlib
import pkgutil
import sys

sys.path.insert(0, ".")
[folder] = [path.parent for path in pathlib.Path(".").glob("*/__init__.py") if path.parent.name != "test"]
package = importlib.import_module(folder.name)
modules = [module.name for module in pkgutil.walk_packages(package.__path__, f"{folder.name}.")]
for module in modules:
    importlib.import_module(module)
assert len(modules) > 50, modules
print(f"{len(modules)} modules of {folder.name} were imported")
