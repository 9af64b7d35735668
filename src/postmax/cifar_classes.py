"""The hundred classes of CIFAR-100, its twenty superclasses, and the superclass of each class."""

from __future__ import annotations

_TREE = {
    "aquatic_mammals": "beaver dolphin otter seal whale",
    "fish": "aquarium_fish flatfish ray shark trout",
    "flowers": "orchid poppy rose sunflower tulip",
    "food_containers": "bottle bowl can cup plate",
    "fruit_and_vegetables": "apple mushroom orange pear sweet_pepper",
    "household_electrical_devices": "clock keyboard lamp telephone television",
    "household_furniture": "bed chair couch table wardrobe",
    "insects": "bee beetle butterfly caterpillar cockroach",
    "large_carnivores": "bear leopard lion tiger wolf",
    "large_man-made_outdoor_things": "bridge castle house road skyscraper",
    "large_natural_outdoor_scenes": "cloud forest mountain plain sea",
    "large_omnivores_and_herbivores": "camel cattle chimpanzee elephant kangaroo",
    "medium_mammals": "fox porcupine possum raccoon skunk",
    "non-insect_invertebrates": "crab lobster snail spider worm",
    "people": "baby boy girl man woman",
    "reptiles": "crocodile dinosaur lizard snake turtle",
    "small_mammals": "hamster mouse rabbit shrew squirrel",
    "trees": "maple_tree oak_tree palm_tree pine_tree willow_tree",
    "vehicles_1": "bicycle bus motorcycle pickup_truck train",
    "vehicles_2": "lawn_mower rocket streetcar tank tractor",
}
_SUPERCLASS_OF = {fine: coarse for coarse, members in _TREE.items() for fine in members.split()}

CIFAR100_SUPERCLASSES: tuple[str, ...] = tuple(_TREE)
"""The names of the superclasses; a superclass's index is its place here."""

CIFAR100_CLASSES: tuple[str, ...] = tuple(sorted(_SUPERCLASS_OF))
"""The names of the classes; a class's index is its place here, which is alphabetical."""

CIFAR100_COARSE: tuple[int, ...] = tuple(CIFAR100_SUPERCLASSES.index(_SUPERCLASS_OF[fine]) for fine in CIFAR100_CLASSES)
"""The index of the superclass of each class."""
