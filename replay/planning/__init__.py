"""How to spend a budget: depth against breadth, models of growth, and the planner."""
