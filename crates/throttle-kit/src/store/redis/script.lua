-- Decides operations on keys by GCRA, on the server's clock.
--
-- KEYS[i]      the key of operation i; may repeat.
-- ARGV[1]      'each': every operation stands alone;
--              'all': checks of which all are charged, or none.
-- ARGV[i + 1]  operation i, packed big-endian: a byte that says what to do
--              (0 check, 1 peek, 2 reset, 3 refund, 4 lease), then the time its
--              cells cost, the quota's window, and for a lease the time of the
--              whole lease. Each time is two doubles: microseconds, and the
--              rest in 2,048,000ths of one. All are whole numbers below 2^53.
--
-- Replies three integers for each operation: a status (0 refused, 1 allowed,
-- 2 leased, -1 the key holds something else), and the key's debt as a time.
--
-- A key's value is the moment its budget is whole again: a time since the Unix
-- epoch, packed like the others. Numbers never become text here: Lua's own
-- conversion keeps only 14 digits.

local CHECK, PEEK, RESET, REFUND, LEASE = 0, 1, 2, 3, 4
local WHOLE = 2048000

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local all = ARGV[1] == 'all'
local debts, cuts, expiries, reply, refused = {}, {}, {}, {}, false

-- All in one call. It has nothing for a key of another type too, so what seems
-- absent is asked for by itself. (A call without keys only asks whether the server answers.)
local values = #KEYS > 0 and redis.call('MGET', unpack(KEYS)) or {}

local function read(key, value)
  value = value or redis.pcall('GET', key)
  if type(value) == 'table' then return { foreign = true } end
  if value and #value == 16 then
    local us, rest = struct.unpack('>dd', value)
    if us >= now and rest >= 0 and rest < WHOLE then return { us - now, rest } end
  end
  return { 0, 0 }
end

local function charge(us, rest, cost, cost_rest, window, window_rest)
  us, rest = us + cost, rest + cost_rest
  if rest >= WHOLE then us, rest = us + 1, rest - WHOLE end
  if us < window or (us == window and rest <= window_rest) then return us, rest end
end

for i = 1, #KEYS do
  local key, packed = KEYS[i], ARGV[i + 1]
  local what, cost, cost_rest, window, window_rest, at = struct.unpack('>Bdddd', packed)
  local debt = debts[key]
  if not debt then
    debt = read(key, values[i])
    debts[key] = debt
    refused = refused or debt.foreign
  end
  local status, us, rest, store = -1, 0, 0, false
  if not debt.foreign or what == RESET then
    status, us, rest = 1, debt[1] or 0, debt[2] or 0
    -- A smaller quota than before, or a clock that stepped back, locks nobody
    -- out for longer than one window.
    local cut = us > window or (us == window and rest > window_rest)
    if cut then us, rest = window, window_rest end
    if what == RESET then
      us, rest, store = 0, 0, true
    elseif what == REFUND then
      us, rest, store = us - cost, rest - cost_rest, cost + cost_rest > 0
      if rest < 0 then us, rest = us - 1, rest + WHOLE end
      if us < 0 then us, rest = 0, 0 end
    else
      local new, new_rest
      if what == LEASE then
        local lease, lease_rest = struct.unpack('>dd', packed, at)
        new, new_rest = charge(us, rest, lease, lease_rest, window, window_rest)
        if new then status = 2 end
      end
      if not new then
        new, new_rest = charge(us, rest, cost, cost_rest, window, window_rest)
      end
      if not new then
        status, refused = 0, true
        -- Kept as it was cut, or it would be cut again and again and never be paid.
        if cut and what ~= PEEK and us + rest > 0 then
          store = true
          cuts[key] = { us, rest, changed = true }
        end
      elseif what ~= PEEK and not (all and refused) then
        us, rest, store = new, new_rest, cost + cost_rest > 0
      end
    end
  end
  if store then
    debt[1], debt[2], debt.changed, debt.foreign = us, rest, true, nil
  end
  local j = 3 * i
  reply[j - 2], reply[j - 1], reply[j] = status, us, rest
end

-- Seconds after which a key goes: up to two longer than it matters, so that its
-- going never cuts a debt short. As text, which many keys of a call share.
local function expiry(us)
  local seconds = math.floor(us / 1000000) + 2
  local text = expiries[seconds]
  if not text then
    text = string.format('%d', seconds)
    expiries[seconds] = text
  end
  return text
end

-- Of checks that are refused together, only what was cut.
for key, debt in pairs(all and refused and cuts or debts) do
  if debt.changed then
    local us, rest = debt[1], debt[2]
    if us == 0 and rest == 0 then
      redis.call('DEL', key)
    else
      redis.call('SETEX', key, expiry(us), struct.pack('>dd', now + us, rest))
    end
  end
end
return reply
