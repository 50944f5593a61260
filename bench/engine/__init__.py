"""How fast a whole cluster runs tasks: WIDE, CHAIN, MANY, triggers, an idle cluster."""
