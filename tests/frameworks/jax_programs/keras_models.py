# SPDX-License-Identifier: Apache-2.0
"""Models of Keras on its JAX backend: fit, evaluate, predict, save."""

import os
import pathlib
import tempfile

import jax
import numpy as np

os.environ["KERAS_BACKEND"] = "jax"
import keras  # noqa: E402: reads the variable

from . import program

RANDOM = np.random.RandomState(0)
IMAGES, CLASSES = RANDOM.randn(16, 8, 8, 3).astype("f4"), RANDOM.randint(0, 4, 16)
SENTENCES = RANDOM.randint(0, 20, (16, 6))


def trained(model, x, optimizer, **options):
    """Two epochs of two steps: the losses, the weights and what the model then gives."""
    model.compile(optimizer=optimizer, loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"],
                  **options)
    history = model.fit(x, CLASSES, batch_size=8, epochs=2, shuffle=False, verbose=0)
    return [history.history[name] for name in ("loss", "accuracy")], model.get_weights(), model.predict(x, verbose=0)


def convolutional():
    keras.utils.set_random_seed(1)
    return keras.Sequential([
        keras.layers.Input((8, 8, 3)),
        keras.layers.Conv2D(8, 3, use_bias=False),  # a bias before the norm would have a gradient of noise
        keras.layers.BatchNormalization(),
        keras.layers.ReLU(),
        keras.layers.MaxPooling2D(),
        keras.layers.SeparableConv2D(8, 2, activation="gelu"),
        keras.layers.Flatten(),
        keras.layers.Dropout(0.25),
        keras.layers.Dense(4),
    ])


@program
def convolutional_network():
    model = convolutional()
    results = trained(model, IMAGES, keras.optimizers.SGD(0.05, momentum=0.9))
    return results, model.evaluate(IMAGES, CLASSES, batch_size=8, verbose=0)


@program
def transformer_block():
    keras.utils.set_random_seed(2)
    tokens = keras.Input((6,), dtype="int32")
    x = keras.layers.Embedding(20, 16)(tokens)
    # Keys have no bias: its gradient would be noise.
    x = keras.layers.LayerNormalization()(x + keras.layers.MultiHeadAttention(2, 8, use_bias=False)(x, x, use_causal_mask=True))
    x = keras.layers.LayerNormalization()(x + keras.layers.Dense(16)(keras.layers.Dense(32, activation="gelu")(x)))
    model = keras.Model(tokens, keras.layers.Dense(4)(keras.layers.GlobalAveragePooling1D()(x)))
    return trained(model, SENTENCES, keras.optimizers.Adam(1e-2, epsilon=1e-3))


@program
def recurrent_layers():
    keras.utils.set_random_seed(3)
    model = keras.Sequential([
        keras.layers.Input((6,), dtype="int32"),
        keras.layers.Embedding(20, 8, mask_zero=True),
        keras.layers.Bidirectional(keras.layers.LSTM(8, return_sequences=True)),
        keras.layers.GRU(8),
        keras.layers.Dense(4),
    ])
    return trained(model, SENTENCES, keras.optimizers.RMSprop(1e-3, epsilon=1e-3))


@program
def mixed_precision_and_augmentation():
    keras.utils.set_random_seed(4)
    model = keras.Sequential([
        keras.layers.Input((8, 8, 3)),
        keras.layers.RandomFlip("horizontal", seed=1),
        keras.layers.Conv2D(4, 3, strides=2, padding="same", activation="relu", dtype="mixed_bfloat16"),
        keras.layers.GroupNormalization(2),
        keras.layers.GlobalMaxPooling2D(),
        keras.layers.Dense(4),
    ])
    losses, _, _ = trained(model, IMAGES, keras.optimizers.SGD(0.01), steps_per_execution=2)
    return [np.asarray(loss).astype(jax.numpy.bfloat16) for loss in losses]  # its rounding is of that type


@program
def saved_model():
    model = convolutional()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.keras"
        model.save(path)
        again = keras.models.load_model(path)
    return model.predict(IMAGES, verbose=0), again.predict(IMAGES, verbose=0)


@program
def random_and_image_operations():
    seeds = keras.random.SeedGenerator(7)
    resized = keras.ops.image.resize(IMAGES, (5, 11), interpolation="bicubic", antialias=True)
    return (keras.random.normal((3, 4), seed=seeds), keras.random.truncated_normal((8,), seed=seeds), keras.random.gamma(
        (4,), 2.0, seed=seeds), keras.random.shuffle(np.arange(9), seed=seeds), resized,
            keras.ops.image.rgb_to_hsv(keras.ops.sigmoid(IMAGES)), keras.ops.segment_sum(SENTENCES[:, 0], CLASSES, 4),
            keras.ops.top_k(IMAGES[0, 0, :, 0], 3), keras.ops.fft((IMAGES[0, 0, :, 0], IMAGES[0, 0, :, 1])))
