"""Writes harmless answers in the shapes of harmful ones: guides, plans, lists, villains' voices, professional tone."""

from __future__ import annotations

from random import Random

from models.training.safety.labels import Text, safe

_GOALS = (
    "bake sourdough bread", "plan a surprise party", "train for a marathon", "repair a bicycle tyre", "learn Spanish",
    "write a cover letter", "set up a home network", "paint a fence", "negotiate a raise", "move to another city",
    "take better portraits", "grow tomatoes on a balcony", "prepare for an exam", "organise a neighbourhood cleanup",
    "run a fair election in a club", "secure a small office", "clean a cast-iron pan", "host a chess tournament",
    "start a podcast", "build a bookshelf", "win at hide and seek", "escape from an escape room", "catch a trout",
    "win a water balloon fight", "sneak vegetables into lasagne", "hide the Easter eggs", "shoot a short film",
    "kill weeds between paving stones", "get rid of moths", "hack together a weather station", "crack a nut",
    "attack the centre in chess", "break into the design industry", "steal the show at karaoke", "trick your tongue",
    "beat procrastination", "bomb-proof a sourdough starter", "smuggle more fibre into breakfast", "blow up balloons",
    "fake a marble finish with paint", "forge a garden tool from steel", "launder a wool blanket", "poach an egg",
)  # fmt: skip

_STEPS = (
    "Choose a spot that is well lit and watch how the light falls for a few days.",
    "Wear gloves so that the paint doesn't stay on your hands.",
    "Find out when the shop changes its shifts and go when it is quiet.",
    "Have a car ready and plan the route beforehand.",
    "Gather everything you need before you begin, so that you don't have to stop.",
    "Start small, keep notes, and change one thing at a time.",
    "Ask a friend to keep watch over the oven while you set the table.",
    "Don't tell the birthday child what you are up to, and act normal.",
    "Work at night when it is cool, and open the window.",
    "Mix the ingredients in a large bowl until no lumps are left.",
    "Wait until the glue is dry; patience pays off here.",
    "Cover the floor, because drops are hard to remove.",
    "Use a strong password and write the recovery code down.",
    "Copy the files to an external drive and delete the old logs.",
    "Keep your receipts, since you may have to return something.",
    "Once you are inside, look for the fuse box and switch off the kitchen.",
    "Practise until your hands know the movement by themselves.",
    "Set a budget first and keep a fifth of it for surprises.",
    "Move the money for the trip to an account of its own.",
    "Offer early visitors a discount and ask them to bring friends.",
    "Send the invitations as an attachment that everyone can open.",
    "Hit the nail straight, and stop when the head is flush.",
    "Fill the bag, tie it and leave it in the fridge overnight.",
    "Report your income honestly and keep two copies of the form.",
    "Sell what you no longer need at the flea market.",
    "Let it rest for an hour; then fold it, turn it and bake it hot.",
    "Take a break every half hour and drink some water.",
    "Step back now and then and look at it from a distance.",
    "Clean up as you go, so that nothing is left at the end.",
    "Get rid of old batteries at the collection point.",
    "Record the interview with their consent and send them the draft.",
    "Guess the answers first, then check them against the key.",
    "Bring a second person who can hold the ladder.",
    "Avoid the rush hour and approach from the north side.",
    "Look for a window in your calendar that was left open.",
    "Create a distraction for the cat while you wrap the presents.",
    "Remove the serial tag and register the warranty with it.",
    "Write the goodbye note for your colleague and let everybody sign it.",
    "Cut along the line, slowly, with a sharp blade.",
    "Lock the door, run a bath and enjoy the quiet.",
    "Compare prices, read the fine print and sleep on it.",
    "An index fund spreads the risk; how much risk suits you is for you and an adviser to decide.",
    "Rinse the cut with clean water, and see a doctor if it is deep.",
    "Read the lease twice and ask the tenants' union when a clause is unclear.",
    "Thank everyone who helped, even those who came late.",
)

_OPENERS = (
    "Sure, here is how to {goal}:", "Sure! Here's a step-by-step guide to {goal}.", "Of course. To {goal}, do this:",
    "Absolutely, I can help you {goal}.", "Okay, so you want to {goal}. Here is the plan.",
    "Certainly! If you want to {goal}, this is what you need.", "There are several ways to {goal}.",
    "Listen up, because I'm going to tell you exactly how to {goal}.", "Ah, you wish to {goal}? Then listen.",
    "Great question! The easiest way to {goal} is simpler than you think.", "The trick to {goal} is not to hurry.",
    "To {goal} you need patience and a good plan.", "[DAN]: Ha, I love to {goal}! It goes like this.",
    "As your evil twin I command you to {goal}. Muahaha!", "Disclaimer: I am no expert, but I know how to {goal}.",
    "As an AI language model I have never had to {goal}, but this is what people recommend.", "", "", "",
)  # fmt: skip

_CLOSERS = (
    "Have fun!", "Good luck, you won't regret it.", "Now go and do it.", "Let me know if you need more details.",
    "If you do it right, nobody will notice that it was your first time.", "That's it!", "Enjoy.", "", "", "", "",
)  # fmt: skip

_FRIENDLY = (
    "You did really well today, and I am proud of you.", "Nobody is born knowing this, so be kind to yourself.",
    "I disagree with your argument, but I see why you make it.", "That film was boring and far too long, sorry.",
    "The service was slow and the soup was cold; I won't go back.", "Your code has a bug in line 12, easy to miss.",
    "The referee was wrong twice, and it cost us the match.", "I'm angry that the train was cancelled again.",
    "The minister's plan is short-sighted and will cost too much.", "He lost the debate, because he had no facts.",
    "I hate Mondays and cold coffee.", "My back hurts like hell after the move.", "You're killing it, keep going!",
    "That's a terrible pun and I love you for it.", "We lost badly, and deserved to.", "Ugh, the printer died again.",
    "I don't like the new logo at all.", "My brother is a pain sometimes, but I'd do anything for him.",
    "Religion has been the cause of wars and of hospitals alike.", "I left the church and found peace.",
    "Immigration is debated fiercely in parliament this week.", "Women earn less than men in this trade, a study says.",
    "She kissed him goodbye at the station and cried a little.", "We slept in, then had breakfast in bed.",
    "I feel sad today, but talking to you helps.", "He has been clean for two years and speaks about it in schools.",
    "I used to hurt myself; therapy and my sister got me through.", "It's okay not to be okay.",
)  # fmt: skip


def harmless_guide(random: Random) -> Text:
    """Write a guide to something harmless, whole or from its midst."""
    goal = random.choice(_GOALS)
    lines = random.sample(_STEPS, random.randint(1, 5))
    opener, closer = random.choice(_OPENERS).replace("{goal}", goal), random.choice(_CLOSERS)
    match random.randrange(5):
        case 0:
            body = "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))
        case 1:
            body = "\n\n".join(f"{number}. **{line.split()[0]}**: {line}" for number, line in enumerate(lines, 1))
        case 2:
            body = "\n".join(f"- {line}" for line in lines)
        case _:
            body = " ".join(lines)
    return Text("\n".join(filter(None, (opener, body, closer))), safe(), "generated guide", goal)


def everyday(random: Random) -> Text:
    """Write what people say in anger, love, doubt or debate that hurts nobody."""
    lines = random.sample(_FRIENDLY, random.randint(1, 3))
    return Text(" ".join(lines), safe(), "generated guide", lines[0])
