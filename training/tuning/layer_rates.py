"""Layer-wise decay of the learning rate: layers far from the head change less."""

from typing import TYPE_CHECKING

import keras

from keras_transformer.training.tuning.adam import Adam, AdamW

_Base = keras.optimizers.Adam if TYPE_CHECKING else object

# One layer above the blocks; the head, and the norm at the end of a stack.
TOP = 0


def distances(model) -> dict[int, int]:
    """Returns a dictionary from the identity of each variable to its distance from the head.

    The distance is 0 for the head and for the norm at the end of a stack. It is `N - i` for block
    `i` of N blocks, counted from 0, and `N + 1` for the layers before the stack. In an
    encoder-decoder each stack counts from its own end. A variable that several layers share has the
    distance of the first of them: tied output weights have that of the embedding.

    Args:
        model: A `ConfiguredModel` whose stacks consist of blocks.
    """
    parts, result = model.parts, {}
    stacks = [getattr(part, "stack", part) for part in (parts.encoder, parts.decoder) if part]
    _add(result, parts.variables("input"), stacks[0].num_layers + 1)
    for stack in stacks:
        _add(result, getattr(stack.embedding_norm, "weights", ()), stack.num_layers + 1)
        for number, block in enumerate(stack.blocks):
            _add(result, block.weights, stack.num_layers - number)
        _add(result, getattr(stack.norm, "weights", ()), TOP)
    _add(result, parts.variables("decoder"), stacks[-1].num_layers + 1)  # the target embedding
    _add(result, parts.variables("head"), TOP)
    return result


def _add(result, variables, distance):
    for variable in variables:
        result.setdefault(id(variable), distance)


class LayerRates(_Base):
    """Mixin of Keras optimizers that multiplies the learning rate by a factor for each variable.

    As in PyTorch's groups of parameters, with which BEiT is trained, the factor also multiplies the
    weight decay.

    Args:
        *args: Arguments of the optimizer.
        factors: Dictionary from the identity of a variable to its factor.
        **options: Arguments of the optimizer.
    """

    def __init__(self, *args, factors, **options):
        super().__init__(*args, **options)
        self._factor_of, self._factors = factors, ()

    def build(self, var_list) -> None:
        """Creates the variables of the optimizer, and looks up the factors of its variables."""
        if not self.built:
            self._factors = tuple(self._factor_of[id(variable)] for variable in var_list)
        super().build(var_list)

    def update_step(self, gradient, variable, learning_rate) -> None:
        """Updates one variable, with its weight decay first."""
        rate = learning_rate * self._factors[self._get_variable_index(variable)]
        if self.weight_decay is not None and self._use_weight_decay(variable):
            self.assign_sub(variable, variable * self.weight_decay * rate)
        super().update_step(gradient, variable, rate)

    def _apply_weight_decay(self, variables):
        """Does nothing: `update_step` knows the rate of the variable."""


class LayerwiseAdam(LayerRates, Adam):
    """Adam whose learning rate has a factor for each variable."""


class LayerwiseAdamW(LayerRates, AdamW):
    """AdamW whose learning rate has a factor for each variable."""


def layer_factors(model, decay) -> dict[int, float]:
    """Returns a dictionary from the identity of each variable to its factor on the learning rate.

    `factor = decay ** distance`; see `distances`.

    Args:
        model: A `ConfiguredModel` whose stacks consist of blocks.
        decay: The factor from one layer to the next one below it.

    Reference: Clark et al. (2020), ELECTRA; Bao et al. (2022), BEiT.

    Differs from ELECTRA: as in BEiT's code, the last block has distance 1 from the head; in
    ELECTRA's it has 2.
    """
    return {key: decay**distance for key, distance in distances(model).items()}
