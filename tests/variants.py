"""Parametrised tests of which `make test` or `.ci/run` runs only some variants.

`make test-all` runs all of them.
"""

import collections

import pytest

# The number of variants in `make test`: each takes about half a second, and they share most of the
# code that they test. 0 leaves out the test, whose equality other tests show on other models.
_FAST_BY_FILE = {
    "tests/audio/test_log_mel.py": {
        "test_frames_equal_a_fourier_transform_in_float64": 4,
    },
    "tests/benchmarks/test_classification_benchmark.py": {
        "test_dropout_is_on_in_training_only_and_padding_changes_nothing": 2,
    },
    "tests/cli/test_bad_lines.py": {
        "test_a_bad_image_does_not_affect_the_other_answers": 1,
    },
    "tests/cli/test_plot.py": {
        "test_attention_of_a_run": 1,
    },
    "tests/cli/test_predict.py": {
        "test_a_classifier_writes_a_label_for_each_line": 1,
    },
    "tests/cli/test_several_runs.py": {
        "test_runs_that_do_not_fit_are_reported_in_one_line": 2,
    },
    "tests/conformance/test_conformance.py": {
        "test_a_layer_called_on_arrays_is_the_layer_in_a_model": 11,
        "test_a_symbolic_output_matches_the_computed_one": 12,
        "test_clone_model": 12,
        "test_config_round_trip": 12,
        "test_dtype_of_one_layer": 8,
        "test_mixed_float16_gradients_are_finite": 8,
        "test_mixed_precision": 17,
        "test_outputs_depend_on_every_argument": 8,
        "test_summary_names_every_sublayer": 12,
        "test_tf_function_of_any_length": 4,
        "test_weights_file": 12,
        "test_xla": 1,
    },
    "tests/decoding/test_beam.py": {
        "test_a_wide_beam_equals_exhaustive_search": 1,
        "test_cached_is_uncached": 1,
    },
    "tests/decoding/test_blocks.py": {
        "test_sums_equal_those_in_float64": 8,
    },
    "tests/decoding/test_cached_kinds.py": {
        "test_a_beam_equals_the_search_without_a_cache": 0,
        "test_greedy_search_equals_the_search_without_a_cache": 0,
    },
    "tests/decoding/test_constraints.py": {
        "test_a_sentence_alone_is_the_same_sentence_in_a_batch": 1,
        "test_a_wide_beam_finds_every_allowed_sentence": 1,
        "test_greedy_takes_the_best_allowed_token": 1,
    },
    "tests/decoding/test_decoder_only.py": {
        "test_a_beam_equals_a_loop_in_python": 1,
        "test_a_prompt_is_kept_even_if_its_tokens_are_forbidden": 1,
        "test_banned_tokens_do_not_follow_prompts": 1,
        "test_steps_with_a_cache_equal_the_whole_model": 1,
    },
    "tests/decoding/test_details.py": {
        "test_outputs_that_are_not_requested_are_not_in_the_graph": 1,
        "test_token_scores_are_those_of_the_model_and_add_up_to_the_score": 1,
    },
    "tests/decoding/test_end_ids.py": {
        "test_an_end_within_a_prompt_does_not_end_it": 2,
        "test_scores_are_those_of_a_single_pass": 2,
    },
    "tests/decoding/test_greedy.py": {
        "test_cached_is_the_reference_without_a_cache": 1,
        "test_cached_is_uncached": 1,
    },
    "tests/decoding/test_output_rules.py": {
        "test_a_beam_that_stops_by_score": 1,
        "test_greedy_search": 1,
    },
    "tests/decoding/test_predictor.py": {
        "test_a_beam_equals_a_loop_in_python": 1,
        "test_a_model_and_its_predictor_give_the_same": 1,
        "test_greedy_search_equals_a_loop_in_python": 1,
        "test_steps_equal_one_pass_over_the_output": 1,
    },
    "tests/decoding/test_read_prompts.py": {
        "test_every_kind_of_attention_reads_prompts": 1,
        "test_prompts_may_contain_tokens_that_are_never_emitted": 1,
        "test_the_result_is_that_of_steps_and_the_prompt_takes_none": 4,
    },
    "tests/decoding/test_sample_decode.py": {
        "test_pairs_of_tokens_occur_with_their_probabilities": 1,
        "test_without_temperature_the_first_of_equal_tokens_is_taken_for_any_draw": 2,
    },
    "tests/decoding/test_scoring.py": {
        "test_a_search_output_scores_as_in_its_search": 1,
    },
    "tests/decoding/test_search.py": {
        "test_a_beam_equals_the_function_with_the_limit_of_each_sentence": 1,
        "test_token_scores_and_alignments_have_the_same_axes": 1,
    },
    "tests/decoding/test_shortlisted.py": {
        "test_a_token_that_a_model_never_emits_is_no_candidate": 1,
        "test_greedy_takes_the_most_probable_candidate": 1,
    },
    "tests/decoding/test_stages.py": {
        "test_a_cache_that_grows_while_it_is_needed_gives_the_same": 1,
        "test_the_graph_of_a_growing_cache_holds_few_steps_however_long_outputs_may_be": 2,
    },
    "tests/export/litert/test_fast_tokenizer.py": {
        "test_the_tokens_of_any_text_are_those_of_the_tokenizer": 1,
    },
    "tests/export/litert/test_memory.py": {
        "test_no_graph_contains_a_table": 1,
    },
    "tests/export/litert/test_source_ids.py": {
        "test_wrong_ids_give_an_empty_output": 1,
    },
    "tests/export/programs/test_browser_modules.py": {
        "test_ids_and_text_are_those_of_the_tokenizer": 2,
    },
    "tests/export/saved_model/test_readmes.py": {
        "test_the_readme_names_the_operation_that_is_missing": 1,
    },
    "tests/export/test_ctranslate2_models.py": {
        "test_options_that_ctranslate2_does_not_support_are_reported": 8,
    },
    "tests/export/test_format_declarations.py": {
        "test_an_invalid_row_is_an_error_or_gives_an_empty_output": 1,
    },
    "tests/export/test_marian.py": {
        "test_options_that_marian_does_not_have_are_refused_by_name": 8,
        "test_the_file_computes_in_marian_what_the_model_computes": 0,
    },
    "tests/export/test_packed_encoders.py": {
        "test_models_have_the_same_outputs": 2,
        "test_real_tokens_have_the_same_states": 2,
    },
    "tests/layers/test_alibi.py": {
        "test_a_custom_position_may_have_weights": 1,
    },
    "tests/layers/test_attend_kernel.py": {
        "test_a_fused_self_attention": 2,
        "test_searches_request_weights_only_for_an_alignment": 1,
    },
    "tests/layers/test_attention.py": {
        "test_the_softmax_is_not_taken_in_16_bits": 2,
    },
    "tests/layers/test_block_kinds.py": {
        "test_a_cache_in_two_parts": 1,
        "test_a_decoder_stack_and_its_steps": 1,
        "test_an_encoder_stack": 5,
        "test_saved_and_loaded": 2,
    },
    "tests/layers/test_constants.py": {
        "test_a_table_is_stored_once_and_outside_of_the_loops": 1,
    },
    "tests/layers/test_decoder.py": {
        "test_one_step_at_a_time_equals_the_whole_sentence": 1,
        "test_rows_with_nothing_to_attend_to_stay_finite": 2,
    },
    "tests/layers/test_distances.py": {
        "test_a_source_and_its_reverse_differ_except_with_alibi": 2,
        "test_padding_before_a_source_changes_nothing": 1,
    },
    "tests/layers/test_doubled_positions.py": {
        "test_one_kind_or_two_intended_ones_give_none": 6,
        "test_two_kinds_of_positions_give_a_warning": 3,
    },
    "tests/layers/test_dropout.py": {
        "test_dtypes_and_xla": 1,
    },
    "tests/layers/test_embedding.py": {
        "test_sinusoids_at_positions_0_to_5000": 1,
    },
    "tests/layers/test_keras_masks.py": {
        "test_attention_to_a_memory": 1,
        "test_keras_attention_on_the_same_memory_in_a_functional_model": 1,
        "test_saved_and_loaded_and_cloned": 1,
        "test_self_attention": 1,
    },
    "tests/layers/test_mask_arguments.py": {
        "test_a_mask_of_two_axes_is_sentences_and_keys": 1,
        "test_masks_are_checked_when_the_graph_runs": 1,
        "test_xla_also_refuses_them": 1,
    },
    "tests/layers/test_masks.py": {
        "test_length_known_only_at_run_time": 1,
    },
    "tests/layers/test_own_positions.py": {
        "test_layers_take_and_save_objects_and_names": 9,
    },
    "tests/layers/test_positions.py": {
        "test_a_step_at_a_time_equals_the_whole_sentence": 1,
        "test_every_option_has_an_effect": 2,
        "test_too_many_rotary_positions_are_never_silently_wrong": 1,
    },
    "tests/layers/test_relative_positions.py": {
        "test_every_dtype_follows_the_formula_with_dense_gradients": 5,
    },
    "tests/layers/test_rematerialization.py": {
        "test_gradients_are_the_same": 1,
    },
    "tests/models/test_hidden_start.py": {
        "test_a_text_is_computed_as_without_its_start": 2,
        "test_the_score_of_a_beam_is_that_of_its_continuation": 1,
        "test_training_counts_the_tokens_that_a_score_counts": 1,
    },
    "tests/models/test_image_classifier.py": {
        "test_logits_equal_the_reference": 4,
        "test_several_class_tokens_and_the_mean_of_their_classifiers": 2,
    },
    "tests/models/test_kinds.py": {
        "test_logits_and_every_attention_weight": 1,
        "test_logits_of_a_language_model": 1,
    },
    "tests/models/test_language_model.py": {
        "test_logits_equal_the_reference": 3,
        "test_one_step_at_a_time_equals_the_whole_text": 1,
        "test_padding_and_neighbours_change_nothing": 3,
        "test_texts_of_only_padding_stay_finite": 3,
    },
    "tests/models/test_masked_losses.py": {
        "test_copies_of_a_model_attach_the_mask_as_well": 2,
        "test_loss_and_accuracy_are_those_of_real_tokens": 2,
    },
    "tests/models/test_option_effects.py": {
        "test_an_option_has_an_effect_or_is_refused": 20,
    },
    "tests/models/test_output_bias.py": {
        "test_it_is_added_to_the_logits": 1,
        "test_it_is_saved_in_a_file": 1,
    },
    "tests/models/test_parts.py": {
        "test_a_part_that_does_not_fit_stays_unchanged": 2,
        "test_a_smaller_stack_gets_evenly_spaced_layers": 2,
        "test_encoder_and_decoder_may_differ_in_every_option": 1,
    },
    "tests/models/test_series_regressor.py": {
        "test_no_step_sees_a_later_one": 2,
    },
    "tests/models/test_sharded_weights.py": {
        "test_weights_in_several_files_are_loaded_as_they_were": 1,
    },
    "tests/models/test_speech_transformer.py": {
        "test_prompts_are_read_in_one_pass_as_they_are_read_step_by_step": 1,
    },
    "tests/models/test_text_classifier.py": {
        "test_a_saved_model_is_the_same_with_its_labels": 2,
        "test_logits_equal_the_reference": 4,
        "test_padding_and_neighbours_change_nothing": 1,
        "test_texts_of_only_padding_stay_finite": 4,
    },
    "tests/models/test_transformer.py": {
        "test_a_sentence_alone_equals_the_same_sentence_in_a_batch": 2,
        "test_added_padding_changes_no_logit_of_a_real_position": 2,
        "test_future_target_tokens_change_nothing": 4,
        "test_logits_and_every_attention_weight_equal_the_reference": 2,
        "test_sentences_of_only_padding_stay_finite": 1,
    },
    "tests/plots/test_attention_figure.py": {
        "test_a_file_is_written_completely_and_reproducibly": 1,
        "test_figures_of_any_size_have_a_printable_size": 2,
    },
    "tests/plots/test_structure.py": {
        "test_the_parameters_add_up_to_those_of_the_model": 4,
    },
    "tests/pretrained/marian/test_convert.py": {
        "test_log_probabilities_equal_those_of_marian": 1,
        "test_searches_equal_those_of_marian": 1,
    },
    "tests/pretrained/test_bert.py": {
        "test_states_and_logits": 4,
        "test_texts_get_the_labels_of_the_checkpoint": 1,
    },
    "tests/pretrained/test_browser_page.py": {
        "test_ids_and_text_are_those_of_the_tokenizers": 1,
    },
    "tests/pretrained/test_converted.py": {
        "test_a_run_contains_the_model_its_vocabulary_and_its_provenance": 1,
        "test_rules_that_do_not_fit_are_reported": 1,
    },
    "tests/pretrained/test_distilbert.py": {
        "test_states_and_logits": 2,
    },
    "tests/pretrained/test_electra.py": {
        "test_states_and_logits": 2,
    },
    "tests/pretrained/test_encoders.py": {
        "test_settings_that_cannot_be_expressed_are_named": 2,
        "test_states_and_logits": 3,
        "test_vocabularies_that_cannot_be_expressed_are_named": 1,
    },
    "tests/pretrained/test_encoders_in_ctranslate2.py": {
        "test_ctranslate2_alone_returns_the_states_of_the_checkpoint": 1,
        "test_every_task_answers_as_the_run_does": 1,
        "test_families_that_ctranslate2_cannot_express_are_refused_by_name": 1,
    },
    "tests/pretrained/test_gpt2.py": {
        "test_logits": 3,
    },
    "tests/pretrained/test_llama.py": {
        "test_hidden_states_and_logits": 2,
    },
    "tests/pretrained/test_m2m_100.py": {
        "test_ids_have_the_tokens_of_languages_in_front": 1,
        "test_logits_states_and_searches": 1,
    },
    "tests/pretrained/test_masked_heads.py": {
        "test_every_tensor_of_the_head_is_needed_and_no_other_is_there": 1,
        "test_files_decide_about_white_space_before_a_mask": 1,
        "test_logits": 3,
        "test_the_setting_must_name_the_head_in_the_file": 1,
    },
    "tests/pretrained/test_opus_mt.py": {
        "test_logits_and_encoder_states": 1,
    },
    "tests/pretrained/test_question_answering.py": {
        "test_a_passage_may_have_no_answer": 1,
    },
    "tests/pretrained/test_roberta.py": {
        "test_states_and_logits": 2,
        "test_the_options_decide_about_the_first_space": 1,
    },
    "tests/pretrained/test_sentencepiece_bpe.py": {
        "test_ids_and_texts": 3,
        "test_the_files_decide_about_a_token_at_the_beginning": 3,
        "test_the_unknown_token_does_not_pad": 1,
        "test_vocabularies_that_cannot_be_expressed_are_named": 8,
    },
    "tests/pretrained/test_trimming.py": {
        "test_files_that_name_no_tokens_are_refused": 2,
        "test_texts_logits_and_rules_are_those_of_the_checkpoint": 1,
    },
    "tests/pretrained/test_vit.py": {
        "test_images_are_prepared_as_the_file_says": 4,
        "test_states_and_logits": 4,
    },
    "tests/tasks/test_answering.py": {
        "test_every_answer_is_whole_in_some_window": 1,
    },
    "tests/tasks/test_attention_weights.py": {
        "test_a_long_text_is_truncated_and_marked": 2,
        "test_kinds_layers_and_heads_are_those_of_the_model": 2,
    },
    "tests/tasks/test_classifying.py": {
        "test_a_result_has_the_probabilities_of_the_model": 1,
    },
    "tests/tasks/test_filling.py": {
        "test_files_of_a_tokenizer_keep_its_mask": 1,
        "test_words_are_the_most_probable_of_the_model": 1,
    },
    "tests/tasks/test_image_steps.py": {
        "test_pixels_are_those_of_pillow": 6,
        "test_steps_are_the_same_for_arrays_files_and_graphs": 2,
    },
    "tests/tasks/test_labelling.py": {
        "test_labels_are_the_most_probable_of_the_model": 1,
    },
    "tests/tasks/test_learned_shortlist.py": {
        "test_the_shortlist_has_the_tokens_with_most_attention": 1,
    },
    "tests/tasks/test_speech_recognizer.py": {
        "test_a_transcript_is_the_search_over_the_frames_of_the_recording": 1,
    },
    "tests/tasks/test_summarizer.py": {
        "test_a_score_is_divided_by_the_length_penalty": 1,
        "test_the_length_settings_of_a_beam_have_an_effect": 1,
        "test_the_settings_of_a_run_name_the_task_of_its_model": 1,
    },
    "tests/tasks/test_whole_word_masking.py": {
        "test_words_are_hidden_as_a_whole_and_as_many_tokens_as_without_words": 1,
    },
    "tests/text/test_wordpiece.py": {
        "test_ids_equal_those_of_the_algorithm": 1,
    },
    "tests/training/data/test_arrays.py": {
        "test_a_training_resumes_with_the_next_batch": 1,
    },
    "tests/training/data/test_cldr.py": {
        "test_a_locale_with_few_words_has_fewer_kinds_of_phrases": 3,
    },
    "tests/training/data/test_data.py": {
        "test_an_epoch_has_every_pair_once": 1,
    },
    "tests/training/data/test_epochs.py": {
        "test_every_epoch_has_as_many_batches_in_its_own_order": 1,
        "test_the_columns_of_an_example_stay_together": 3,
    },
    "tests/training/data/test_packing.py": {
        "test_texts_of_a_row_do_not_see_each_other": 2,
    },
    "tests/training/data/test_sampling.py": {
        "test_shapes_are_those_of_the_first_window": 1,
    },
    "tests/training/data/test_store.py": {
        "test_chunks_encoded_before_a_kill_are_kept": 1,
    },
    "tests/training/distillation/test_distill.py": {
        "test_an_interrupted_call_resumes_where_it_stopped": 1,
        "test_texts_generated_differently_are_not_mixed": 1,
    },
    "tests/training/loop/test_objectives.py": {
        "test_an_update_equals_a_plain_step": 1,
    },
    "tests/training/loop/test_start.py": {
        "test_parts_that_do_not_fit_are_reported_in_one_line": 1,
    },
    "tests/training/losses/test_ctc.py": {
        "test_an_update_adds_ctc_to_the_cross_entropy": 1,
    },
    "tests/training/losses/test_loss.py": {
        "test_every_position_equals_the_reference": 3,
    },
    "tests/training/losses/test_projection.py": {
        "test_an_output_bias": 1,
        "test_loss_and_gradients_follow_the_formula": 2,
    },
    "tests/training/losses/test_word_level.py": {
        "test_gradients_are_those_of_automatic_differentiation": 2,
    },
    "tests/training/test_answering_training.py": {
        "test_ends_are_the_outer_tokens_of_words_in_other_layouts": 1,
    },
    "tests/training/test_array_trainings.py": {
        "test_a_run_is_self_contained": 1,
        "test_a_run_keeps_the_settings_it_was_started_with": 1,
        "test_an_average_is_a_run": 1,
        "test_an_evaluation_equals_the_validation": 1,
        "test_training_is_not_resumed_with_a_changed_corpus": 1,
    },
    "tests/training/test_averaging.py": {
        "test_the_weights_are_the_mean_of_the_archives": 1,
    },
    "tests/training/test_labelling_training.py": {
        "test_wrong_labels_are_reported_in_one_line": 1,
    },
    "tests/training/test_task_trainings.py": {
        "test_a_run_is_self_contained": 1,
    },
    "tests/training/tuning/test_rounded_weights.py": {
        "test_gradients_are_those_of_the_rounded_weights": 1,
    },
}
# The same, but `.ci/run` runs the others.
_FAST_REST_IN_CI_BY_FILE = {
    "tests/cli/test_bad_inputs.py": {
        "test_a_bad_input_is_reported_in_one_line_and_leaves_no_file": 40,
    },
    "tests/cli/test_bad_lines.py": {
        "test_a_bad_image_gets_the_fields_of_an_empty_line": 0,
        "test_a_line_without_a_passage_does_not_affect_the_other_answers": 0,
        "test_strict_leaves_no_output_file": 0,
        "test_strict_writes_the_labels_before_the_first_bad_image": 0,
    },
    "tests/cli/test_line_searches.py": {
        "test_alignments_come_after_the_text": 0,
        "test_every_input_line_gets_one_output_line": 0,
        "test_n_best_lists_have_the_number_of_their_line": 0,
        "test_scores_come_before_the_text": 0,
        "test_the_maximum_length_limits_the_output": 0,
    },
    "tests/cli/test_plot.py": {
        "test_a_page_and_a_figure_are_written_together": 0,
    },
    "tests/cli/test_predict.py": {
        "test_a_classifier_is_evaluated_on_its_data_and_on_files": 0,
        "test_a_language_model_is_evaluated_on_its_data_and_on_a_file": 0,
        "test_a_truncated_text_is_reported": 0,
    },
    "tests/cli/test_shortlist_command.py": {
        "test_exchanged_pairs_are_not_among_those_of_a_run_in_both_directions": 0,
    },
    "tests/decoding/test_beam.py": {
        "test_a_beam_of_one_is_greedy": 0,
    },
    "tests/decoding/test_best_path.py": {
        "test_the_command_searches_runs_with_ctc_only": 0,
    },
    "tests/decoding/test_decoder_only.py": {
        "test_a_state_that_grows_in_stages_gives_the_same": 0,
        "test_an_output_begins_with_its_prompt_which_does_not_count_in_the_score": 0,
        "test_prompts_of_different_lengths_equal_each_of_them_alone": 0,
    },
    "tests/decoding/test_details.py": {
        "test_extra_outputs_do_not_change_the_others": 0,
    },
    "tests/decoding/test_narrowing.py": {
        "test_it_differs_from_a_beam_of_constant_width": 0,
        "test_narrowing_beams_of_several_sizes_in_a_batch_equal_each_alone": 0,
    },
    "tests/decoding/test_output_rules.py": {
        "test_a_forced_first_token_and_ngrams_that_do_not_repeat": 0,
        "test_power_with_the_exponent_1_is_the_average": 0,
        "test_the_best_of_a_beam_does_not_depend_on_the_number_returned": 0,
    },
    "tests/decoding/test_predictor.py": {
        "test_hypotheses_change_their_places_in_these_beams": 0,
    },
    "tests/decoding/test_read_prompts.py": {
        "test_graphs_of_any_and_of_fixed_shape_read_prompts": 0,
        "test_limits_of_single_outputs_end_within_the_prompt": 0,
        "test_what_follows_the_end_of_a_prompt_is_not_read": 0,
    },
    "tests/decoding/test_sample_decode.py": {
        "test_equal_sentences_get_equal_samples_with_one_seed_and_different_ones_with_many": 0,
        "test_low_temperature_is_greedy": 0,
    },
    "tests/decoding/test_search.py": {
        "test_a_sample_is_seeded_by_the_number_of_its_row": 0,
        "test_one_graph_serves_all_numbers": 0,
    },
    "tests/decoding/test_shortlisted.py": {
        "test_a_beam_ranks_by_probabilities_among_the_candidates": 1,
    },
    "tests/export/litert/test_converter.py": {
        "test_the_merged_file_equals_that_of_one_conversion": 0,
    },
    "tests/export/litert/test_stand_ins.py": {
        "test_a_weight_that_is_not_found_is_converted_as_a_variable": 0,
        "test_the_file_equals_the_one_that_the_converter_writes": 0,
    },
    "tests/export/programs/test_browser.py": {
        "test_the_attention_is_that_of_the_model_in_memory": 0,
    },
    "tests/export/test_labelling_exports.py": {
        "test_predict_opens_the_files": 0,
        "test_rows_of_wrong_ids_have_no_label": 0,
        "test_the_readme_names_labels_and_axes": 0,
    },
    "tests/export/test_loaded.py": {
        "test_a_surrogate_is_an_error_that_names_it": 0,
        "test_a_truncated_file_is_reported": 0,
        "test_it_translates_as_the_model_in_memory": 0,
    },
    "tests/export/test_marian.py": {
        "test_an_export_with_other_weights_is_not_kept": 0,
    },
    "tests/export/test_shortlists.py": {
        "test_copies_of_a_translator_keep_the_shortlist_or_get_another": 0,
    },
    "tests/export/test_tasks.py": {
        "test_a_wrong_weight_of_a_language_model_is_detected": 0,
        "test_forced_tokens_do_not_hide_a_wrong_score": 0,
    },
    "tests/fields/test_fields.py": {
        "test_a_text_without_tokens_is_empty_whatever_its_special_tokens": 0,
    },
    "tests/layers/test_embedding.py": {
        "test_positions_after_the_table_in_a_compiled_loop": 2,
    },
    "tests/models/test_hidden_start.py": {
        "test_the_order_of_an_ensemble_does_not_change_its_scores": 0,
    },
    "tests/models/test_speech_transformer.py": {
        "test_a_minimum_length_does_not_count_the_prompt": 0,
        "test_a_recording_alone_gets_the_tokens_that_it_gets_in_a_batch": 0,
        "test_searches_score_their_outputs_as_the_model_does": 0,
    },
    "tests/pretrained/test_bert.py": {
        "test_options_decide_about_lower_case": 0,
        "test_words_get_the_labels_of_the_checkpoint": 0,
    },
    "tests/pretrained/test_distilbert.py": {
        "test_texts_get_the_labels_of_the_checkpoint": 0,
        "test_words_get_labels": 0,
    },
    "tests/pretrained/test_llama.py": {
        "test_settings_that_cannot_be_expressed_are_named": 8,
    },
    "tests/pretrained/test_opus_mt.py": {
        "test_such_characters_are_looked_up_in_a_saved_model_and_from_exported_files": 0,
        "test_the_python_of_the_page_runs": 0,
    },
    "tests/pretrained/test_question_answering.py": {
        "test_answers_are_the_best_spans_of_the_checkpoint": 0,
    },
    "tests/pretrained/test_roberta.py": {
        "test_words_get_the_labels_of_the_checkpoint": 0,
    },
    "tests/pretrained/test_sentence_encoders.py": {
        "test_prompts_are_kept_in_the_run": 0,
    },
    "tests/pretrained/test_trimming.py": {
        "test_the_command_writes_a_run_and_its_provenance": 0,
    },
    "tests/pretrained/test_unigram.py": {
        "test_texts_get_the_labels_of_the_checkpoint": 0,
    },
    "tests/system/test_documents.py": {
        "test_the_python_of_a_page_runs": 0,
    },
    "tests/system/test_wheel.py": {
        "test_a_package_index_accepts_both": 0,
        "test_the_metadata_is_that_of_the_project": 0,
    },
    "tests/tasks/test_answering.py": {
        "test_an_answer_is_the_best_span_of_any_window": 0,
    },
    "tests/tasks/test_classifying.py": {
        "test_a_run_is_opened_as_the_pipeline_of_its_task": 0,
    },
    "tests/tasks/test_ensemble.py": {
        "test_a_score_uses_the_mean_of_the_probabilities": 0,
        "test_probabilities_of_labels_are_means": 0,
        "test_several_runs_answer_as_an_ensemble": 0,
    },
    "tests/tasks/test_labelling.py": {
        "test_a_lower_limit_truncates_more": 0,
    },
    "tests/tasks/test_prompts.py": {
        "test_the_default_applies_unless_another_prompt_is_chosen": 0,
    },
    "tests/tasks/test_sentence_embeddings.py": {
        "test_a_run_is_evaluated_with_pairs_or_with_scores": 0,
    },
    "tests/tasks/test_speech_recognizer.py": {
        "test_a_prompt_is_not_part_of_the_text": 0,
        "test_predict_reads_files_on_the_command_line_and_on_stdin": 0,
        "test_predict_reads_raw_samples_from_stdin": 0,
        "test_samples_after_the_end_are_ignored_whatever_they_are": 0,
        "test_silence_up_to_the_maximum_in_place_of_a_mask": 0,
    },
    "tests/tasks/test_summarizer.py": {
        "test_evaluation_prints_rouge": 0,
    },
    "tests/tasks/test_text_generator.py": {
        "test_samples_continue_their_prompts_for_any_batch_size": 0,
    },
    "tests/tasks/test_threads_of_pipelines.py": {
        "test_single_pass_models": 0,
    },
    "tests/tasks/test_translator.py": {
        "test_a_beam_has_the_papers_settings_by_default": 0,
        "test_one_graph_serves_every_length_and_penalty": 0,
        "test_one_graph_serves_every_limit_of_greedy_search": 0,
        "test_scores_of_pairs_equal_those_of_the_function_for_any_batch_size": 0,
    },
    "tests/text/test_byte_bpe.py": {
        "test_it_works_in_a_saved_model_that_python_does_not_load": 0,
        "test_texts_may_be_normalised_and_split_at_another_pattern": 0,
        "test_texts_of_long_tokens_are_read_to_their_end": 0,
    },
    "tests/text/test_javascript_readers.py": {
        "test_ids_offsets_and_texts_are_those_of_the_tokenizer": 0,
        "test_texts_are_classified_as_in_python": 2,
        "test_words_are_labelled_as_in_python": 2,
    },
    "tests/text/test_smaller_vocabularies.py": {
        "test_wordpiece_encodes_hostile_texts_as_before": 1,
    },
    "tests/training/data/test_arrays.py": {
        "test_augmentation_depends_on_example_seed_and_epoch": 0,
    },
    "tests/training/data/test_cldr.py": {
        "test_more_phrases_than_possible_are_refused": 0,
        "test_two_processes_may_build_at_once": 0,
    },
    "tests/training/data/test_data.py": {
        "test_seed_and_epoch_determine_the_order": 0,
        "test_the_epochs_of_a_training_are_the_shuffled_batches": 0,
        "test_validation_drops_no_real_sentence": 0,
    },
    "tests/training/data/test_entities.py": {
        "test_the_seed_determines_the_sentences": 0,
    },
    "tests/training/data/test_stream.py": {
        "test_another_seed_gives_another_order": 0,
    },
    "tests/training/data/test_weighting.py": {
        "test_weights_of_one_change_only_the_order": 0,
    },
    "tests/training/distillation/test_distill.py": {
        "test_a_call_that_fails_at_any_write_resumes_there": 0,
        "test_an_unfinished_student_keeps_its_vocabulary": 0,
        "test_damaged_files_are_reported": 0,
        "test_several_teachers_search_as_an_ensemble": 0,
        "test_shards_search_their_parts_and_a_call_without_a_shard_continues": 0,
        "test_sources_too_long_for_the_teacher_are_left_out": 0,
    },
    "tests/training/distillation/test_diversification.py": {
        "test_both_directions_resume": 1,
    },
    "tests/training/distillation/test_word_level_targets.py": {
        "test_predictions_follow_their_examples_into_batches": 0,
        "test_predictions_that_do_not_belong_to_the_pairs_are_reported": 0,
        "test_probabilities_are_the_mean_of_those_that_teachers_give_to_each_prefix": 0,
    },
    "tests/training/loop/test_learner.py": {
        "test_no_tensor_of_a_validation_contains_all_logits": 0,
    },
    "tests/training/loop/test_objectives.py": {
        "test_padding_rows_do_not_change_an_update": 0,
    },
    "tests/training/loop/test_session.py": {
        "test_the_same_pairs_in_another_order_are_other_data": 0,
    },
    "tests/training/loop/test_start.py": {
        "test_a_smaller_run_begins_with_some_of_the_layers": 0,
        "test_layers_that_do_not_fit_are_refused": 0,
    },
    "tests/training/losses/test_ctc.py": {
        "test_a_text_longer_than_its_recording_counts_in_the_cross_entropy_only": 0,
        "test_long_rows_equal_those_of_tensorflow": 0,
    },
    "tests/training/settings/test_derived.py": {
        "test_the_default_vocabulary_size_fits_the_text": 0,
    },
    "tests/training/test_array_trainings.py": {
        "test_a_wrong_line_is_reported_in_one_line": 1,
        "test_bytes_of_an_unused_column_change_nothing": 0,
        "test_weights_do_not_fit_other_labels": 0,
        "test_wrong_images_are_reported": 1,
    },
    "tests/training/test_speech_training.py": {
        "test_masks_depend_on_seed_and_epoch_and_keep_padding": 0,
    },
    "tests/training/test_task_trainings.py": {
        "test_a_missing_one_of_two_vocabularies_is_reported": 0,
        "test_examples_seen_are_counted": 0,
        "test_source_and_target_have_vocabularies_of_their_own": 0,
        "test_the_best_accuracy_becomes_the_model": 0,
        "test_the_examples_of_docstrings_run": 1,
        "test_the_perplexity_of_a_validation_equals_an_evaluation": 0,
        "test_the_weights_of_a_classifier_with_other_labels_are_refused": 0,
    },
    "tests/training/test_train.py": {
        "test_ctrl_c_saves_and_prints_how_to_resume": 0,
    },
    "tests/training/test_vocabulary.py": {
        "test_every_unicode_character_is_composed_as_in_python": 0,
    },
    "tests/training/tuning/test_adapters.py": {
        "test_only_adapters_change_and_merged_equals_unmerged": 0,
    },
    "tests/training/tuning/test_layer_rates.py": {
        "test_recurrent_layers_have_no_decay": 0,
    },
    "tests/training/tuning/test_rounded_weights.py": {
        "test_a_moving_average_is_that_of_the_weights_before_rounding": 0,
        "test_the_model_of_a_run_has_rounded_weights_and_its_checkpoints_others": 0,
    },
}
# The number of variants of slow tests in `.ci/run`; the others are `long`, all of them if it is 0.
_SLOW_BY_FILE = {
    "tests/benchmarks/test_decoding_benchmark.py": {
        "test_the_model_stops_at_its_length_and_does_not_repeat_itself": 0,
    },
    "tests/benchmarks/test_pareto_benchmark.py": {
        "test_the_page_prefers_greedy_search": 0,
    },
    "tests/benchmarks/test_pretrained_benchmark.py": {
        "test_outputs_have_the_timed_length_and_differ": 1,
    },
    "tests/benchmarks/test_runoff_benchmark.py": {
        "test_settings_are_chosen_without_the_test_period": 0,
    },
    "tests/benchmarks/test_seeds_benchmark.py": {
        "test_jax_computes_what_this_package_computes": 0,
    },
    "tests/cli/test_bad_inputs.py": {
        "test_a_closed_stream_is_reported": 1,
    },
    "tests/cli/test_bad_lines.py": {
        "test_a_bad_line_gets_the_fields_of_an_empty_line": 1,
    },
    "tests/cli/test_command_line.py": {
        "test_importing_the_package_registers_its_layers": 1,
        "test_the_highest_log_level_is_silent": 0,
    },
    "tests/cli/test_default_search.py": {
        "test_another_search_replaces_it_as_a_whole": 0,
    },
    "tests/cli/test_line_searches.py": {
        "test_samples_equal_those_of_python_for_any_batch_size": 0,
    },
    "tests/cli/test_predict.py": {
        "test_every_search_reaches_a_language_model": 0,
    },
    "tests/cli/test_several_runs.py": {
        "test_an_evaluation_names_its_runs_and_does_not_change_them": 0,
    },
    "tests/cli/test_shortlist_command.py": {
        "test_a_sample_takes_pairs_at_equal_distances": 1,
    },
    "tests/conformance/test_conformance.py": {
        "test_dtype_of_one_layer": 6,
        "test_keras_file_in_a_fresh_process": 0,
        "test_mixed_float16_gradients_are_finite": 6,
        "test_mixed_precision": 13,
        "test_saved_model": 3,
        "test_two_replicas": 0,
        "test_xla": 2,
    },
    "tests/conformance/test_keras_harness.py": {
        "test_the_computed_output_shape_matches_the_output": 9,
        "test_the_layer_test_of_keras_with_training": 7,
        "test_the_serialization_test_of_keras": 6,
        "test_time_distributed": 6,
    },
    "tests/decoding/test_beam.py": {
        "test_a_wide_beam_equals_exhaustive_search": 2,
        "test_an_empty_source_stays_finite": 1,
        "test_compiled_is_eager": 1,
        "test_n_best_are_distinct_and_sorted_and_have_their_own_scores": 2,
        "test_stopping_early_changes_nothing": 2,
    },
    "tests/decoding/test_beam_sizes.py": {
        "test_each_sentence_gets_the_outputs_of_a_beam_of_its_size": 2,
    },
    "tests/decoding/test_cached_kinds.py": {
        "test_a_beam_equals_the_search_without_a_cache": 2,
        "test_a_step_at_a_time_is_the_whole_sentence": 3,
        "test_greedy_search_equals_the_search_without_a_cache": 2,
    },
    "tests/decoding/test_constraints.py": {
        "test_a_beam_of_one_takes_the_best_allowed_token": 5,
        "test_a_narrow_beam_equals_the_search_in_plain_python": 6,
        "test_compiled_is_eager_and_constraints_are_inputs": 1,
        "test_litert_needs_builtin_operators_only_and_returns_the_same": 0,
        "test_samples_are_allowed_sentences": 6,
    },
    "tests/decoding/test_decoder_only.py": {
        "test_compiled_is_eager": 1,
    },
    "tests/decoding/test_details.py": {
        "test_alignments_are_the_attention_of_the_whole_output": 4,
        "test_compiled_is_eager": 1,
        "test_litert_needs_builtin_operators_only_and_returns_the_same": 1,
        "test_token_scores_are_those_of_the_model_and_add_up_to_the_score": 2,
    },
    "tests/decoding/test_greedy.py": {
        "test_an_empty_source_stays_finite": 1,
        "test_compiled_is_eager": 2,
    },
    "tests/decoding/test_narrowing.py": {
        "test_a_beam_that_narrows": 4,
    },
    "tests/decoding/test_output_rules.py": {
        "test_a_beam_that_stops_by_score": 2,
    },
    "tests/decoding/test_predictor.py": {
        "test_a_beam_equals_a_loop_in_python": 2,
        "test_a_state_that_grows_in_stages_gives_the_same": 0,
        "test_an_ensemble_of_a_model_with_itself_is_the_model": 1,
        "test_compiled_is_eager": 1,
        "test_steps_equal_one_pass_over_the_output": 2,
    },
    "tests/decoding/test_read_prompts.py": {
        "test_graphs_of_any_and_of_fixed_shape_read_prompts": 1,
    },
    "tests/decoding/test_sample_decode.py": {
        "test_compiled_is_eager_and_the_controls_are_inputs": 1,
    },
    "tests/decoding/test_scoring.py": {
        "test_compiled_is_eager": 1,
        "test_dropout_is_off_and_half_precision_scores_in_float32": 2,
    },
    "tests/decoding/test_shortlisted.py": {
        "test_a_beam_ranks_by_probabilities_among_the_candidates": 2,
        "test_constraints_still_apply": 1,
        "test_it_compiles_for_every_runtime": 0,
        "test_neither_the_sizes_nor_the_batch_change_a_result": 1,
    },
    "tests/decoding/test_stages.py": {
        "test_a_cache_that_grows_while_it_is_needed_gives_the_same": 1,
        "test_all_results_are_the_same": 0,
        "test_litert_finds_the_same_in_three_stages": 1,
    },
    "tests/export/litert/test_arm.py": {
        "test_arm_gives_the_same_tokens_and_scores": 1,
        "test_int4_gives_the_same_tokens_without_xnnpack": 1,
    },
    "tests/export/litert/test_batches.py": {
        "test_the_command_translates_a_file_of_32_lines_in_one_call": 0,
    },
    "tests/export/litert/test_beam_kinds.py": {
        "test_it_returns_what_the_run_returns": 0,
        "test_the_default_of_the_run_is_the_default_of_its_file": 0,
    },
    "tests/export/litert/test_computed_constants.py": {
        "test_a_file_of_speech_stores_neither_distances_nor_numbers": 2,
    },
    "tests/export/litert/test_converter.py": {
        "test_the_merged_file_equals_that_of_one_conversion": 1,
    },
    "tests/export/litert/test_int4.py": {
        "test_a_beam_and_batches_share_one_table": 0,
        "test_every_kind_of_model": 1,
    },
    "tests/export/litert/test_litert.py": {
        "test_a_model_can_translate_in_another_thread_during_its_export": 0,
        "test_a_process_that_ran_other_models_before_gives_the_same": 0,
        "test_builtin_operators_only_and_no_output_comes_from_a_loop": 1,
        "test_int8_is_small": 0,
        "test_quantised_files_lose_little": 2,
        "test_signatures_are_named_and_of_fixed_shape": 0,
        "test_the_scales_of_a_large_table_are_stored_twice_and_not_rounded": 0,
    },
    "tests/export/litert/test_litert_beam.py": {
        "test_a_minimum_length_is_part_of_the_file": 1,
        "test_a_wrong_second_hypothesis_is_detected": 1,
        "test_n_best_tokens_equal_those_of_the_model": 0,
    },
    "tests/export/litert/test_litert_refusals.py": {
        "test_a_model_that_needs_other_operators_is_refused_by_name": 1,
    },
    "tests/export/litert/test_source_ids.py": {
        "test_valid_ids_give_bitwise_the_outputs_without_the_check": 0,
    },
    "tests/export/litert/test_static_int8.py": {
        "test_a_wrong_calibration_fails": 1,
        "test_every_kind_of_model_has_int8_products": 1,
    },
    "tests/export/litert/test_strings.py": {
        "test_a_phone_gives_the_same": 0,
        "test_a_process_that_ran_other_models_before_gives_the_same": 0,
        "test_quantised_files_give_the_same_from_strings_as_from_ids": 0,
        "test_strings_that_are_translated_differently_are_detected": 1,
        "test_the_beam_gives_the_same": 1,
    },
    "tests/export/programs/test_android.py": {
        "test_ids_and_texts_are_those_of_the_tokenizer": 2,
    },
    "tests/export/programs/test_browser.py": {
        "test_a_file_with_only_a_beam_is_searched_with_it": 1,
        "test_texts_are_labelled_as_by_the_interpreter": 2,
        "test_the_first_translation_is_as_fast_as_later_ones": 0,
    },
    "tests/export/saved_model/test_output_matrix.py": {
        "test_the_logits_are_those_of_the_table": 8,
    },
    "tests/export/saved_model/test_readmes.py": {
        "test_without_the_import_loading_names_that_operation": 1,
    },
    "tests/export/saved_model/test_saved_model.py": {
        "test_a_string_that_is_not_utf8_is_translated_as_by_translate": 1,
        "test_each_signature_is_shown_before_it_is_traced_and_called": 0,
    },
    "tests/export/saved_model/test_saved_model_jit.py": {
        "test_an_empty_batch_and_odd_sentences": 0,
        "test_every_search_is_compiled": 0,
        "test_the_readme_gives_the_shapes_and_the_start_of_the_server": 0,
        "test_tokens_equal_those_of_the_search_without_a_compiler": 0,
    },
    "tests/export/saved_model/test_saved_model_refusals.py": {
        "test_an_alignment_of_another_layer_is_detected": 0,
        "test_every_output_of_an_alignment_is_checked": 1,
        "test_every_signature_is_checked": 1,
    },
    "tests/export/test_apart.py": {
        "test_a_process_that_is_killed_leaves_no_export": 1,
        "test_a_saved_model_apart_answers_like_one_in_this_process": 0,
        "test_the_report_of_a_file_is_the_same": 0,
    },
    "tests/export/test_array_tasks.py": {
        "test_a_quantised_series": 1,
        "test_a_series_in_a_tflite_file": 1,
        "test_images_are_resized_as_in_the_run": 0,
        "test_images_in_a_tflite_file": 1,
        "test_snow_accounting_in_both_exports": 0,
    },
    "tests/export/test_ctranslate2.py": {
        "test_quantised_models_are_smaller_and_lose_little": 1,
        "test_the_tied_table_is_stored_once": 1,
    },
    "tests/export/test_ctranslate2_models.py": {
        "test_a_beam_after_a_forced_token_gives_the_same": 1,
        "test_a_beam_gives_the_same": 1,
        "test_every_kind_of_language_model_gives_the_same": 1,
        "test_every_kind_of_model_gives_the_same": 1,
    },
    "tests/export/test_embedding_exports.py": {
        "test_exports_have_the_prompts": 1,
        "test_files_return_the_vectors_of_the_run": 1,
    },
    "tests/export/test_everywhere.py": {
        "test_the_same_sample_everywhere": 0,
        "test_the_same_tokens_everywhere": 1,
    },
    "tests/export/test_export_searches.py": {
        "test_a_saved_model_searches_with_the_given_beam": 1,
    },
    "tests/export/test_exported_kinds.py": {
        "test_a_litert_file_gives_the_same": 1,
        "test_a_saved_model_gives_the_same": 0,
        "test_an_int8_file_scores_as_the_model": 1,
        "test_an_output_bias_in_quantised_files": 0,
    },
    "tests/export/test_format_declarations.py": {
        "test_the_signatures_of_a_generator_equal_its_own_outputs": 1,
    },
    "tests/export/test_marian.py": {
        "test_the_file_computes_in_marian_what_the_model_computes": 1,
        "test_the_multipliers_come_from_the_largest_activations": 1,
    },
    "tests/export/test_packed_encoders.py": {
        "test_models_have_the_same_outputs": 2,
        "test_real_tokens_have_the_same_states": 2,
    },
    "tests/export/test_shortlists.py": {
        "test_a_file_translates_as_the_run_does_with_the_same_shortlist": 1,
    },
    "tests/export/test_speech_exports.py": {
        "test_a_saved_model_takes_files_or_samples": 1,
        "test_a_tflite_file_emits_the_tokens_of_the_run": 1,
        "test_exports_of_the_best_path_keep_its_maximum_length": 0,
    },
    "tests/export/test_threads_of_exports.py": {
        "test_eight_threads_get_the_same_results_as_one": 0,
    },
    "tests/layers/test_other_models.py": {
        "test_an_encoder": 3,
    },
    "tests/layers/test_positions.py": {
        "test_it_is_saved_in_a_file": 2,
    },
    "tests/layers/test_rematerialization.py": {
        "test_gradients_are_the_same": 5,
    },
    "tests/models/test_option_effects.py": {
        "test_an_option_has_an_effect_or_is_refused": 8,
    },
    "tests/models/test_quantize.py": {
        "test_exports_refuse_it_by_name": 0,
    },
    "tests/pretrained/test_bert.py": {
        "test_a_new_head_is_trained_on_its_encoder": 0,
        "test_exports_of_a_labeller": 0,
    },
    "tests/pretrained/test_continued_pretraining.py": {
        "test_a_converted_checkpoint_is_trained_further": 0,
    },
    "tests/pretrained/test_converted.py": {
        "test_a_student_of_it_inherits_its_tokens_its_rules_and_its_licence": 0,
        "test_fine_tuning_lowers_the_loss_and_keeps_the_settings_of_the_checkpoint": 0,
    },
    "tests/pretrained/test_deit.py": {
        "test_a_run_its_exports_and_plots_agree": 0,
    },
    "tests/pretrained/test_electra.py": {
        "test_exports_answer_as_the_checkpoint": 0,
    },
    "tests/pretrained/test_encoders.py": {
        "test_exports_answer_as_the_checkpoint": 0,
        "test_ids_equal_those_of_the_package_tokenizers": 1,
    },
    "tests/pretrained/test_encoders_in_ctranslate2.py": {
        "test_a_head_that_differs_is_detected": 1,
        "test_quantised_vectors_point_in_nearly_the_same_direction": 1,
        "test_the_folder_of_ctranslate2s_own_converter_has_the_same_states": 1,
    },
    "tests/pretrained/test_exports.py": {
        "test_a_saved_model_in_a_session_and_in_python": 0,
    },
    "tests/pretrained/test_families.py": {
        "test_a_checkpoint_becomes_a_run_that_computes_the_same": 1,
    },
    "tests/pretrained/test_llama.py": {
        "test_ctranslate2_without_a_token_that_begins_texts": 0,
        "test_texts_go_on_as_in_numpy_in_a_run_as_well": 1,
    },
    "tests/pretrained/test_llama_in_ctranslate2.py": {
        "test_the_folder_of_a_llama_in_int8": 0,
        "test_tokens_are_those_of_the_run": 1,
    },
    "tests/pretrained/test_masked_heads.py": {
        "test_exports_predict_the_words_of_the_checkpoint": 0,
    },
    "tests/pretrained/test_piece_vocabulary.py": {
        "test_a_folder_without_the_model_has_the_same_ids": 1,
    },
    "tests/pretrained/test_question_answering.py": {
        "test_exports_answer_as_the_checkpoint": 0,
    },
    "tests/pretrained/test_roberta.py": {
        "test_texts_get_the_labels_of_the_checkpoint": 1,
    },
    "tests/pretrained/test_sentencepiece_bpe.py": {
        "test_texts_go_on_as_in_numpy_in_a_run_as_well": 1,
    },
    "tests/pretrained/test_ties.py": {
        "test_output_weights_that_are_missing_are_those_of_the_embedding": 1,
        "test_weights_in_the_file_are_used_although_the_settings_tie_them": 1,
    },
    "tests/pretrained/test_trained_here.py": {
        "test_its_int8_file_passes_the_agreement_check": 0,
    },
    "tests/pretrained/test_unigram.py": {
        "test_exports_answer_as_the_checkpoint": 0,
    },
    "tests/pretrained/test_whisper.py": {
        "test_beams_follow_the_rules_and_prompts_do_not_count": 1,
    },
    "tests/pretrained/test_whisper_choices.py": {
        "test_predict_with_exports_takes_languages_and_writes_timestamps": 0,
        "test_the_detected_language_is_the_most_probable_one": 1,
    },
    "tests/pretrained/test_whisper_exports.py": {
        "test_a_saved_model": 1,
        "test_a_tflite_file": 1,
    },
    "tests/pretrained/test_whisper_training.py": {
        "test_a_converted_checkpoint_is_fine_tuned_and_exported": 0,
    },
    "tests/system/test_budgets.py": {
        "test_a_new_task_and_a_new_input_train": 1,
    },
    "tests/system/test_copy_and_reverse.py": {
        "test_a_litert_file_of_a_recurrent_decoder_passes_its_agreement_check": 0,
        "test_a_model_learns_to_copy_and_to_reverse": 0,
        "test_a_saved_model_of_a_recurrent_decoder_translates_as_the_run": 0,
    },
    "tests/system/test_documents.py": {
        "test_the_python_of_a_page_runs": 4,
    },
    "tests/system/test_examples.py": {
        "test_without_its_data_an_example_tells_in_a_line_how_to_get_them": 1,
    },
    "tests/tasks/test_run.py": {
        "test_keras_knows_the_models_whoever_imports_it_first": 1,
    },
    "tests/tasks/test_threads_of_pipelines.py": {
        "test_searches": 1,
        "test_single_pass_models": 1,
    },
    "tests/tasks/test_translator.py": {
        "test_a_beam_translates_as_beam_decoding": 1,
    },
    "tests/tasks/test_whole_word_masking.py": {
        "test_words_are_hidden_as_a_whole_and_as_many_tokens_as_without_words": 3,
    },
    "tests/test_activations.py": {
        "test_in_a_saved_model": 1,
    },
    "tests/test_config.py": {
        "test_number_of_parameters": 8,
    },
    "tests/text/test_javascript_readers.py": {
        "test_ids_offsets_and_texts_are_those_of_the_tokenizer": 5,
        "test_the_portable_pattern_knows_every_code_point": 0,
    },
    "tests/text/test_kotlin_readers.py": {
        "test_ids_offsets_and_texts_are_those_of_the_tokenizer": 3,
    },
    "tests/text/test_ragged_rows.py": {
        "test_one_long_text_does_not_widen_the_others": 1,
    },
    "tests/training/data/test_epochs.py": {
        "test_batches_are_skipped_and_shared_out": 1,
    },
    "tests/training/distillation/test_word_level_targets.py": {
        "test_a_resumed_training_equals_an_uninterrupted_one": 0,
    },
    "tests/training/loop/test_learner.py": {
        "test_an_output_bias_is_trained_and_evaluated": 1,
        "test_evaluate_returns_the_metrics_of_compile": 2,
    },
    "tests/training/loop/test_moving_average.py": {
        "test_the_block_sees_the_average_and_training_does_not": 1,
    },
    "tests/training/loop/test_session.py": {
        "test_a_diverged_training_names_the_checkpoint_on_disk": 1,
        "test_a_moving_average_is_the_same_after_an_interruption": 0,
        "test_the_best_model_is_kept_and_may_be_the_final_one": 1,
        "test_the_history_grows_row_by_row_after_a_kill": 0,
    },
    "tests/training/loop/test_start.py": {
        "test_a_run_is_complete_without_the_run_it_started_from": 0,
    },
    "tests/training/losses/test_loss.py": {
        "test_two_replicas_of_unequal_length_equal_one_device": 0,
    },
    "tests/training/losses/test_r_drop.py": {
        "test_it_makes_passes_agree": 0,
        "test_loss_and_gradients_follow_the_definition": 3,
        "test_without_dropout_an_update_is_the_same": 1,
    },
    "tests/training/losses/test_sim_cut.py": {
        "test_a_run_resumes_exactly_and_is_averaged": 0,
        "test_without_dropout_and_cutoff_an_update_is_the_same": 1,
    },
    "tests/training/settings/test_changes.py": {
        "test_extending_a_finished_run_equals_a_longer_run": 0,
    },
    "tests/training/test_adam.py": {
        "test_a_plain_transformer": 1,
        "test_the_learner": 2,
    },
    "tests/training/test_array_trainings.py": {
        "test_training_can_start_from_the_weights_of_a_run": 1,
    },
    "tests/training/test_averaging.py": {
        "test_the_ends_of_epochs_are_averaged": 0,
        "test_the_new_run_is_used_like_any_other": 0,
    },
    "tests/training/test_configs.py": {
        "test_a_configuration_of_the_paper_takes_a_step": 1,
    },
    "tests/training/test_presets.py": {
        "test_an_update_compiles_for_static_shapes": 2,
    },
    "tests/training/test_task_trainings.py": {
        "test_a_resumed_packed_training_ends_like_an_uninterrupted_one": 0,
    },
    "tests/training/tuning/test_adapters.py": {
        "test_a_run_with_adapters_resumes_and_is_averaged": 0,
    },
    "tests/training/tuning/test_frozen.py": {
        "test_a_run_with_frozen_parts_resumes_and_is_averaged": 0,
        "test_frozen_parts_do_not_change_on_two_devices": 0,
    },
    "tests/training/tuning/test_layer_rates.py": {
        "test_updates_on_two_devices_equal_adam_by_hand": 0,
    },
    "tests/training/tuning/test_rounded_weights.py": {
        "test_an_interrupted_run_ends_with_the_same_weights": 0,
        "test_two_replicas_make_the_same_update": 0,
    },
}


def _by_name(table):
    return {
        f"{file}::{test}": number for file, tests in table.items() for test, number in tests.items()
    }


FAST_VARIANTS, SLOW_VARIANTS = _by_name(_FAST_BY_FILE), _by_name(_SLOW_BY_FILE)
CI_VARIANTS = _by_name(_FAST_REST_IN_CI_BY_FILE)


def mark_variants(items):
    """Marks all other variants: fast ones as `slow`, most also as `long`; slow ones as `long`."""
    groups = collections.defaultdict(list)
    for item in items:
        groups[item.nodeid.partition("[")[0]].append(item)
    for name, group in groups.items():
        fast = [item for item in group if not item.get_closest_marker("slow")]
        slow = [
            item
            for item in group
            if item.get_closest_marker("slow") and not item.get_closest_marker("long")
        ]
        for item in _left_out(fast, FAST_VARIANTS.get(name)):
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.long)
        for item in _left_out(fast, CI_VARIANTS.get(name)):
            item.add_marker(pytest.mark.slow)
        for item in _left_out(slow, SLOW_VARIANTS.get(name)):
            item.add_marker(pytest.mark.long)


def _left_out(variants, kept):
    """Yields all variants but `kept` of them, at equal distances; none if `kept` is `None`."""
    count = len(variants)
    kept = count if kept is None else min(kept, count)
    for number, item in enumerate(variants):
        if (number + 1) * kept // count == number * kept // count:
            yield item
