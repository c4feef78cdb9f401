"""Every rule that a sensitivity rests on, where it is proved, and the deliberate bugs that show its audit to see it.

A rule without a bug is a rule that nobody would miss: a new one gets a line here, and a plant that some audit catches.
"""

from __future__ import annotations

import importlib

import pytest

from tests.audit.planted import BUGS

ACTS = "tests.journey.test_stage_acts"
CHOICES = "tests.audit.test_choices"
DISTINCT = "tests.distinct.test_neighbours_of_distinct"
EVERY = "tests.audit.test_every_node"
NORMS = "tests.audit.test_norms"
PRODUCTS = "tests.audit.test_products"
RELATIONS = "tests.audit.test_relations"
STAGES = "tests.audit.test_stages"
TREES = "tests.test_generated_relations"
WINDOWS = "tests.audit.test_windows"

RULES: dict[str, tuple[str, ...]] = {
    # What one unit adds to sums
    "sql_rewrite.bound:_Builder._add": (
        "sensitivity_of_one_group", "l2_of_one_group", "l0_of_one_coordinate", "sensitivity_of_one_row",
        "sum_with_upper_minus_lower", "one_level_of_a_tree",
    ),
    "sql_rewrite.contribution:Contribution.l2_squared_rows": ("l2_of_an_even_spread",),
    "sql_rewrite.contribution:Contribution.scaled": ("scaling_forgotten", "each_group_has_the_whole_total"),
    "sql_rewrite.contribution:contribution_of": ("groups_of_a_unit_not_chosen", "rows_of_a_unit_not_bounded"),
    "sql_rewrite.contribution:contribution_over_atoms": (
        "tests.audit.test_atoms:test_atoms_of_which_each_is_held_by_itself_are_caught",
    ),
    "sql_rewrite.lower_units:UnitSums": (
        "parts_rounded_up", "clipped_sum_not_a_part_of_its_rows", "two_sums_side_by_side", "null_rows_beside_the_bound",
        "units_counted_as_rows",
    ),
    "sql_rewrite.lower_vector:tails": (f"{PRODUCTS}:_running_sums_out_of_order",),
    "sql_rewrite.value_bounds:clip_columns": ("values_not_clipped",),
    "mechanisms.release:nodes_of": ("intervals_that_overlap", "a_place_for_null"),
    "sql_rewrite.lower_ranks:places_summed": ("tests.audit.test_quantiles:test_rows_that_are_not_weighed_are_caught",),
    "sql_rewrite.lower_distinct:values_summed": (
        f"{DISTINCT}:scaled_and_not_chosen", f"{DISTINCT}:every_value_kept", f"{DISTINCT}:root_of_the_number_in_l2",
        f"{DISTINCT}:bound_over_all_groups_forgotten", f"{DISTINCT}:choice_by_what_others_have",
        f"{DISTINCT}:choice_by_order_of_rows",
    ),
    "sql_rewrite.normed:_scaled": (
        f"{NORMS}:sensitivity_of_another_norm", f"{NORMS}:l1_as_if_it_were_l2", f"{NORMS}:norm_of_each_cell",
        f"{NORMS}:norm_rounded_down", f"{NORMS}:factor_rounded_up", f"{NORMS}:counts_not_scaled",
    ),
    "sql_rewrite.lower_normed:_weight": (
        f"{NORMS}:weight_of_one", f"{NORMS}:weight_of_the_group_alone", f"{NORMS}:weight_for_each_row",
    ),
    "sql_rewrite.value_histogram:ValueHistogram": ("tests.audit.test_value_histograms:test_planted_bugs_are_caught",),
    "sql_rewrite.automatic_bounds:bound_with": ("tests.audit.test_chosen_bounds:sensitivity_of_nominal_bounds",),
    "mechanisms.consistency:Lattice.change": ("tests.audit.test_levels:test_levels_that_are_not_paid_are_found",),
    # What one unit does to a choice, and to what is shown
    "mechanisms.measurements.drawn_ranks:_ranges": ("tests.audit.test_drawn:test_planted_bugs_are_caught",),
    "sql_rewrite.choices:described_choice": (f"{CHOICES}:two_directions", f"{CHOICES}:one_row"),
    "sql_rewrite.contribution:parts_of_unit": (f"{CHOICES}:one_part",),
    "privacy.statistic:Choice.draws_per_unit": (f"{CHOICES}:one_draw",),
    "mechanisms.gaussian_threshold:gaussian_threshold": (
        "threshold_off", "tests.mechanisms.test_gaussian_threshold:test_singletons_are_released_with_at_most_delta",
    ),
    "mechanisms.weighted_threshold:weighted_threshold": (
        "tests.mechanisms.test_weighted_threshold:test_planted_bugs_show_a_unit_too_often",
    ),
    "mechanisms.truncated_geometric:SelectionTable": (
        "tests.mechanisms.test_truncated_geometric:test_the_enumeration_sees_a_threshold_one_too_low",
    ),
    # How many rows a unit has, and of which groups
    "sql_rewrite.unit_facts:contribution_bound": (f"{RELATIONS}:test_bounds_of_the_first_table_alone_are_caught",),
    "sql_rewrite.unit_facts:_one_each": (f"{TREES}:test_a_broken_promise_is_found",),
    "sql_rewrite.unit_facts:constant_per_unit": (
        f"{TREES}:test_a_broken_promise_is_found",
        f"{EVERY}:test_groups_of_several_keys_that_are_taken_for_one_are_caught",
    ),
    "sql_rewrite.unit_facts:_over_all_rows": (
        f"{EVERY}:test_windows_that_are_taken_for_one_value_of_a_unit_are_caught",
    ),
    "sql_rewrite.unit_facts:steady_relations": (
        "tests.audit.test_outer_chains:test_a_person_taken_to_be_the_same_in_all_rows_is_caught",
    ),
    "sql_rewrite.numbered_rows:most_rows": (f"{WINDOWS}:test_fewer_rows_than_are_kept_are_caught",),
    "sql_rewrite.numbered_rows:_numbers": (
        f"{EVERY}:test_first_rows_of_parts_of_a_unit_that_are_taken_for_its_first_are_caught",
        f"{EVERY}:test_ranks_that_are_taken_for_numbers_are_caught",
    ),
    "sql_rewrite.constant_rows:most_met": (
        "tests.audit.test_constants:test_a_row_that_is_said_to_meet_one_constant_is_caught",
    ),
    "sql_rewrite.public_joins:partners": (
        "tests.audit.test_public_joins:test_a_row_that_is_said_to_meet_one_row_is_caught",
    ),
    "sql_rewrite.row_unions:_added": ("tests.audit.test_unions:test_a_bound_of_one_branch_alone_is_caught",),
    "sql_rewrite.full_joins:_Outer": (
        "tests.audit.test_full_joins:test_rows_of_both_branches_are_caught",
    ),
    # Whose rows they are
    "sql_rewrite.lower_unit_groups:lowered_sources": (
        f"{RELATIONS}:test_groups_without_the_unit_are_caught", f"{RELATIONS}:test_a_join_of_other_units_is_caught",
        f"{RELATIONS}:test_a_nested_query_that_looks_at_others_is_caught",
        "tests.audit.test_unions:test_rows_of_one_unit_for_all_are_caught",
    ),
    "sql_rewrite.lower_unit_windows:window_layers": (
        f"{WINDOWS}:test_windows_of_several_units_are_caught",
        f"{WINDOWS}:test_equal_rows_in_the_order_of_the_table_are_caught",
        f"{EVERY}:test_rows_that_depend_on_others_are_caught",
    ),
    "sql_rewrite.join_links:refers": ("join_that_multiplies", "join_without_condition"),
    # Stages: what later ones read, what it costs, and when
    "sql_rewrite.stages:Stages": (f"{STAGES}:test_a_stage_that_reads_true_numbers_is_caught",),
    "sql_rewrite.stage_hidden:hidden_list": (f"{STAGES}:test_a_list_of_groups_that_nothing_selected_is_caught",),
    "server.journey.stages:stage_values": (f"{ACTS}:true_numbers_bound",),
    "server.journey.charges:charges_of": (f"{ACTS}:first_stage_charged_too_little",),
    "server.journey.admission:Admission": (f"{ACTS}:read_before_the_charge",),
    "server.journey.running:Running": (f"{ACTS}:noise_of_another_price",),
}  # fmt: skip
"""For each rule its place, and plants: those of planted.py by name, the others as module:function."""


def _found(place: str) -> object:
    module, _, path = place.partition(":")
    found: object = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_a_bug_that_is_caught(rule: str) -> None:
    """Shows that rule and plants are where they are said to be; the plants' own tests show that they are caught."""
    assert _found(rule) is not None
    known = {bug.name for bug in BUGS}
    for plant in RULES[rule]:
        assert plant in known if ":" not in plant else callable(_found(plant)), plant
