// What models may call in these tests, the form that they are asked for, and what was run: `tools.py` in JavaScript.
import { z } from "zod";

export const RAN = [];

export const pay = {
  description: "Pay an amount, from a card if one is given.",
  schema: z.object({ amount: z.number().int(), card: z.string().optional() }),
  run: ({ amount, card }) => {
    RAN.push(["pay", { amount, card: card ?? null }]);
    return `paid ${amount}`;
  },
};

export const look_up = {
  description: "Look something up.",
  schema: z.object({ about: z.string() }),
  run: ({ about }) => {
    RAN.push(["look_up", { about }]);
    return `a page about ${about}`;
  },
};

export const Person = z.object({ name: z.string(), age: z.number().int(), city: z.string() });
