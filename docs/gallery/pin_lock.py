"""The keys that open any lock of four digits, by an Euler circuit of the words of three digits."""

from pipelines import de_bruijn_sequence

ORDER = 4
keys = de_bruijn_sequence("0123456789", ORDER)
opened = {keys[i : i + ORDER] for i in range(len(keys) - ORDER + 1)}
assert opened == {f"{pin:0{ORDER}}" for pin in range(10**ORDER)}
print(f"{len(keys):,} keys try all {len(opened):,} numbers: {keys[:30]}...{keys[-10:]}")
print(f"one by one they take {ORDER * 10**ORDER:,}")
