"""Parametrised tests of which `make test` runs only some variants; `make test-all` runs all."""

import collections

import pytest

# The number of variants in `make test`: each takes about half a second, and they share most of the
# code that they test.
_BY_FILE = {
    "tests/conformance/test_conformance.py": {
        "test_xla": 5,
    },
    "tests/decoding/test_beam.py": {
        "test_cached_is_uncached": 3,
    },
    "tests/decoding/test_output_rules.py": {
        "test_a_beam_that_stops_by_score": 3,
    },
    "tests/decoding/test_predictor.py": {
        "test_a_beam_equals_a_loop_in_python": 3,
        "test_greedy_search_equals_a_loop_in_python": 3,
        "test_hypotheses_change_their_places_in_these_beams": 3,
        "test_steps_equal_one_pass_over_the_output": 3,
    },
    "tests/decoding/test_shortlisted.py": {
        "test_greedy_takes_the_most_probable_candidate": 2,
    },
    "tests/layers/test_block_kinds.py": {
        "test_a_cache_in_two_parts": 4,
        "test_a_decoder_stack_and_its_steps": 8,
        "test_an_encoder_stack": 8,
        "test_saved_and_loaded": 4,
    },
    "tests/layers/test_keras_masks.py": {
        "test_attention_to_a_memory": 2,
        "test_self_attention": 2,
    },
    "tests/layers/test_mask_arguments.py": {
        "test_a_mask_of_two_axes_is_sentences_and_keys": 3,
        "test_masks_are_checked_when_the_graph_runs": 3,
    },
    "tests/layers/test_positions.py": {
        "test_a_step_at_a_time_equals_the_whole_sentence": 5,
        "test_every_option_has_an_effect": 5,
    },
    "tests/models/test_transformer.py": {
        "test_a_sentence_alone_equals_the_same_sentence_in_a_batch": 4,
        "test_added_padding_changes_no_logit_of_a_real_position": 13,
        "test_future_target_tokens_change_nothing": 4,
        "test_logits_and_every_attention_weight_equal_the_reference": 6,
    },
    "tests/pretrained/marian/test_convert.py": {
        "test_log_probabilities_equal_those_of_marian": 3,
        "test_searches_equal_those_of_marian": 3,
    },
    "tests/pretrained/test_families.py": {
        "test_a_checkpoint_becomes_a_run_that_computes_the_same": 3,
    },
    "tests/pretrained/test_opus_mt.py": {
        "test_logits_and_encoder_states": 6,
    },
    "tests/training/data/test_arrays.py": {
        "test_a_training_resumes_with_the_next_batch": 2,
    },
    "tests/training/data/test_data.py": {
        "test_an_epoch_has_every_pair_once": 3,
    },
    "tests/training/data/test_epochs.py": {
        "test_every_epoch_has_as_many_batches_in_its_own_order": 3,
    },
    "tests/training/distillation/test_distill.py": {
        "test_texts_generated_differently_are_not_mixed": 3,
    },
}
FAST_VARIANTS = {
    f"{file}::{test}": number for file, tests in _BY_FILE.items() for test, number in tests.items()
}


def mark_variants(items):
    """Marks all but these numbers of variants, at equal distances, as `slow` and `long`."""
    groups = collections.defaultdict(list)
    for item in items:
        groups[item.nodeid.partition("[")[0]].append(item)
    for name in FAST_VARIANTS.keys() & groups.keys():
        variants = [item for item in groups[name] if not item.get_closest_marker("slow")]
        count, kept = len(variants), min(FAST_VARIANTS[name], len(variants))
        for number, item in enumerate(variants):
            if (number + 1) * kept // count == number * kept // count:
                item.add_marker(pytest.mark.slow)
                item.add_marker(pytest.mark.long)
