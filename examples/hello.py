"""The smallest useful workflow in Python: greet, do two things at once, tell the result.

Publish it with ``shoal apply examples/hello.py`` and run it with
``shoal run hello -p name=Ada --wait``.
"""

from shoal.client import Parameter, Shell, Workflow, python_task

with Workflow(
    "hello",
    project="examples",
    description="Greets somebody and counts the letters of their name.",
    parameters={
        "name": Parameter("world", description="The name to greet."),
        "times": Parameter(3, type="integer", description="How often."),
    },
) as hello:
    greet = Shell("greet", script='echo "Hello, $name!"')

    @python_task
    def count(name: str) -> None:
        """Count the letters of the name."""
        from collections import Counter

        for letter, times in Counter(name.lower()).most_common():
            print(letter, times)

    @python_task(retries=1, retry_delay="2s")
    def repeat(name: str, times: int) -> None:
        """Say the name some times."""
        print(", ".join([name] * times))

    greet >> [count(), repeat()] >> Shell("done", script='echo "That was $name."')
