git init --quiet --initial-branch main
git add proto
git -c user.name=a -c user.email=a@example.com commit --quiet -m 'The shop'
sed -i 's/int32 count/int64 count/; /note/d' proto/shop/v1/shop.proto
